// One run: loading the program and its capabilities, and turning the way it ends
// into the final frames.

import { $Map, $String, evaluate, instanceOf, mapGet, mapSet, slice, stringify, then } from "./primordials.ts";
import { type Body, type Bridge, bridge, failedCall } from "./bridge.ts";
import { type Output, output } from "./console.ts";
import { Done, Fail, type Failure, type Program, Report, send, Trace } from "./protocol.ts";
import { isUnsupported } from "./realm.ts";
import { type Recorder, recorder } from "./recorder.ts";
import { byteLength, exceeds, NotJSON, serialize } from "./serialize.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

export interface Run {
  answer(payload: Uint8Array): void;
  note(text: string): void;
}

// run starts the program. However it ends, it ends with one final frame.
export function run(p: Program, useConsole: (c: Output["console"]) => void): Run {
  const out = output(p.limits);
  useConsole(out.console);
  const loaded = new $Map<string, Body>();
  const load = (name: string): Body | null => {
    let body: Body | null = mapGet(loaded, name) ?? null;
    if (!body && typeof p.capabilities[name] === "string") {
      body = compile(p.capabilities[name], out, () => rec);
      mapSet(loaded, name, body);
    }
    return body;
  };
  const link: Bridge = bridge(p.limits, () => rec, load);
  const rec: Recorder = recorder(p.limits.records, link.bind);
  const fail = (f: Failure): void => finish(rec, out, Fail, stringify(f));

  let body: Body | null = null;
  try {
    body = compile(p.source, out, () => rec);
  } catch (e) {
    fail({ ...failure(e), kind: "syntax" });
  }
  if (body) {
    then(
      body(link.mcp(rec.root, 0), link.capabilities(rec.root, 0), p.args, 0, rec.root),
      (value: unknown) => succeed(value, p.limits.result, rec, out, fail),
      (e: unknown) => fail(failure(e)),
    );
  }
  return { answer: link.answer, note: out.note };
}

// compile loads JavaScript that evaluates to an async function.
function compile(source: string, out: Output, rec: () => Recorder): Body {
  const f = evaluate(source);
  return (mcp, capabilities, args, _depth, frame) => f(mcp, capabilities, args, progress, out.console, rec().marks, frame);
}

function progress(done: unknown, total?: unknown, message?: unknown): void {
  const number = (v: unknown): number => typeof v === "number" && v - v === 0 ? v : 0;
  const text = message === undefined || message === null ? "" : $String(message);
  send(Report, stringify({ done: number(done), total: number(total), message: slice(text, 0, 1000) }));
}

function succeed(value: unknown, limit: number, rec: Recorder, out: Output, fail: (f: Failure) => void): void {
  let text: string;
  try {
    text = serialize(value, "result");
  } catch (e) {
    const f = failure(e);
    return fail(instanceOf(NotJSON, e) ? { ...f, kind: "result" } : f);
  }
  if (exceeds(text, limit)) return fail({ kind: "output", name: "", message: "", size: byteLength(text) });
  finish(rec, out, Done, text);
}

function finish(rec: Recorder, out: Output, kind: number, text: string): void {
  send(Trace, `{"records":${rec.take() || "[]"}${rec.rest()},"logsDropped":${out.dropped()}}`);
  send(kind, text);
}

const clip = (text: string): string => text.length > 16000 ? `${slice(text, 0, 16000)}… [cut]` : text;

// failure describes anything that can be thrown.
function failure(e: Any): Failure {
  let f: Failure = { kind: "thrown", name: "Error", message: "a value that cannot be shown was thrown" };
  try {
    if (e === null || typeof e !== "object") {
      return { kind: "thrown", name: typeof e, message: clip($String(e)) };
    }
    f = { kind: "thrown", name: clip($String(e.name ?? "Error")), message: clip($String(e.message ?? stringify(e))), stack: clip($String(e.stack ?? "")) };
    const id = failedCall(e);
    if (id !== undefined) f = { ...f, kind: "tool", callId: id, server: $String(e.server), tool: $String(e.tool) };
    else if (isUnsupported(e) || e.code === "ERR_MODULE_NOT_FOUND") f.kind = "unsupported";
  } catch { /* a getter or a proxy of the program's threw: what is known must do */ }
  return f;
}
