// The entry of a sandbox worker: warm up, say hello, wait for one program, run it.
// It must not touch process or any module of Node's: that costs 30 ms per start and
// opens what realm.ts closes.

import { $Promise, $String, $Uint8Array, decode, encode, parse, setBytes, stringify } from "./primordials.ts";
import { Answer, Call, Done, Hello, type Program, f64, putU32, redirect, sendHello, serve, Start, u32, Version } from "./protocol.ts";
import { run, type Run } from "./program.ts";
import { type Clock, determine, lockDown, settle } from "./realm.ts";

let current: Run | null = null;
let clock: Clock | null = null; // of a program whose time is fixed
// Replaced by the program's own console when there is one.
let console: Record<string, (...args: unknown[]) => void> = {};

function start(p: Program, useConsole: (c: typeof console) => void): void {
  if (p.seed) clock = determine(p.seed, (e) => report("uncaught", e));
  current = run(p, useConsole);
}

async function handle(kind: number, payload: Uint8Array): Promise<void> {
  switch (kind) {
    case Hello:
      if (u32(payload, 0) !== Version) throw new Error(`the gateway speaks version ${u32(payload, 0)}, this worker ${Version}`);
      return;
    case Start:
      if (!current) start(parse(decode(payload)), (c) => Object.defineProperty(globalThis, "console", { value: c, writable: true, configurable: true }));
      return;
    case Answer:
      if (clock) await clock.advance(f64(payload, 5));
      current?.answer(payload);
      // Whoever awaits this answer goes on before the next one comes, whether the
      // two were read together or not.
      if (clock) await settle();
  }
}

// A floating rejection or a throwing timer is the program's bug: it is reported and
// does not lose the result.
function report(what: string, reason: unknown): void {
  let text = "?";
  try {
    text = $String((reason as Error)?.stack ?? reason);
  } catch { /* the program's own getter threw */ }
  current?.note(`[error] ${what}: ${text}`);
}
addEventListener("unhandledrejection", (e) => {
  e.preventDefault();
  report("unhandled rejection", e.reason);
});
addEventListener("error", (e) => {
  e.preventDefault();
  report("uncaught", e.error ?? e.message);
});

// warmUp runs the whole path once into a sink, so that the engine has compiled it
// before anyone waits.
async function warmUp(): Promise<void> {
  const source = `"use strict";async function program(mcp,capabilities,args,progress,console,__t,__s0){
    const a = await __t.m(__s0, "n1", mcp).s.t({ a: [1, "x"] });
    for (const x of __t.l(__s0, "l1", [1, 2], 1, "xs")) { const __s1 = __t.i(__s0, "l1"); if (__t.d(__s1, "d1", x > 1)) console.log("x", { a }); }
    return await Promise.all([mcp.s.t({}), mcp.s.t.raw({}), capabilities.c({ a })]);
  }\nprogram`;
  const capability = `async function program(mcp,capabilities,args){ return args; }\nprogram`;
  const limits = { argument: 1e6, result: 1e6, logLines: 9, logBytes: 9999, records: 99, depth: 2 };
  const answer = encode(`{"ok":[1,{"a":"b"}]}`);
  await new $Promise<void>((resolve) => {
    redirect((frame) => {
      if (frame[4] === Done) return resolve();
      if (frame[4] !== Call) return;
      const payload = new $Uint8Array(13 + answer.length);
      putU32(payload, 0, u32(frame, 5));
      payload[4] = 1;
      setBytes(payload, answer, 13);
      queueMicrotask(() => void handle(Answer, payload));
    });
    const text = stringify({ source, args: {}, capabilities: { c: capability }, limits });
    start(parse(decode(encode(text))), (c) => console = c);
  });
  redirect(null);
  current = null;
}

async function main(): Promise<void> {
  await warmUp();
  lockDown(console);
  sendHello();
  await serve(handle, () => current !== null);
}

void main();
