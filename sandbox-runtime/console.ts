// The program's console: entries go to the gateway as text, bounded here so that a
// flood costs neither the pipe nor the gateway's memory.

import { $String, inspect, slice } from "./primordials.ts";
import { Log, type ProgramLimits, send } from "./protocol.ts";
import { byteLength, exceeds } from "./serialize.ts";

export interface Output {
  console: Record<string, (...args: unknown[]) => void>;
  // note logs a line of the runtime's own.
  note(text: string): void;
  dropped(): number;
}

export function output(limits: ProgramLimits): Output {
  let lines = limits.logLines;
  let bytes = limits.logBytes;
  let dropped = 0;

  const entry = (text: string): void => {
    if (lines <= 0 || bytes <= 0) {
      dropped++;
      return;
    }
    lines--;
    // A third of the bytes left is always a whole number of characters that fits.
    if (exceeds(text, bytes)) text = `${slice(text, 0, bytes / 3)}… [cut]`;
    bytes -= byteLength(text);
    send(Log, text);
  };
  const logger = (prefix: string) => (...args: unknown[]): void => {
    if (lines <= 0 || bytes <= 0) dropped++; // before formatting: it is the expensive part
    else entry(prefix + format(args));
  };
  const log = logger("");
  const nothing = () => {};
  return {
    console: {
      log,
      info: log,
      debug: log,
      dir: (v) => log(v),
      table: (v) => log(v),
      trace: log,
      group: log,
      groupCollapsed: log,
      warn: logger("[warn] "),
      error: logger("[error] "),
      assert: (ok, ...rest) => ok ? undefined : logger("[error] Assertion failed: ")(...rest),
      groupEnd: nothing,
      time: nothing,
      timeEnd: nothing,
      timeLog: nothing,
      count: nothing,
      countReset: nothing,
      clear: nothing,
    },
    note: entry,
    dropped: () => dropped,
  };
}

function format(args: unknown[]): string {
  let out = "";
  for (let i = 0; i < args.length; i++) {
    if (i) out += " ";
    const v = args[i];
    if (typeof v === "string") {
      out += v;
      continue;
    }
    try {
      out += $String(inspect(v, { depth: 4, colors: false }));
    } catch {
      out += "[cannot be shown]";
    }
  }
  return out;
}
