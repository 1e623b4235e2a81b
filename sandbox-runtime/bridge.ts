// The bridge: mcp and capabilities as the program sees them. A reference is a proxy
// that remembers what it names and where in the program it is used; calling it
// sends one Call frame and gives the promise of its Answer.

import {
  $Error, $Map, $Promise, $Proxy, $TypeError, $WeakMap, apply, create, decode, defineProperty, mapDelete, mapGet, mapSet, parse, reflectGet, setPrototypeOf,
  stringify, subarray, weakGet, weakSet,
} from "./primordials.ts";
import { Call, type CallFailure, type ProgramLimits, send, u32 } from "./protocol.ts";
import type { Frame, Recorder } from "./recorder.ts";
import { exceeds, serialize } from "./serialize.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

// ToolError is what a program catches when a call fails.
export class ToolError extends $Error {
  declare server: string;
  declare tool: string;
  declare code: string;
  declare hint?: string;
  declare content?: unknown;
  // deno-lint-ignore constructor-super
  constructor(server: string, tool: string, failure: CallFailure, id: number) {
    super(failure.message);
    define(this, "name", "ToolError");
    this.server = server;
    this.tool = tool;
    this.code = failure.code ?? "tool_failed";
    if (failure.hint) this.hint = failure.hint;
    if (failure.content !== undefined) this.content = failure.content;
    weakSet(callOf, this, id);
  }
}

const callOf = new $WeakMap<object, number>();
const define = (o: object, key: string, value: unknown) => defineProperty(o, key, { __proto__: null, value, configurable: true, writable: true } as PropertyDescriptor);

// failedCall is the id of the call that made this error, undefined if none did.
export const failedCall = (e: unknown): number | undefined => typeof e === "object" && e !== null ? weakGet(callOf, e) : undefined;

interface Reference {
  kind: "root" | "server" | "tool";
  capability: boolean; // below capabilities instead of mcp
  server: string;
  tool: string;
  raw: boolean;
  frame: Frame;
  node: string; // empty: used where the analyser saw no call
  depth: number; // of capabilities around the code that holds the reference
}

// Reply is what came back for a call: a value or a failure.
interface Reply {
  value: Any;
  failure: CallFailure | null;
}

// Body is a loaded program or capability.
export type Body = (mcp: Any, capabilities: Any, args: Any, depth: number, frame: Frame) => Promise<unknown>;

export interface Bridge {
  mcp(frame: Frame, depth: number): Any;
  capabilities(frame: Frame, depth: number): Any;
  bind(value: Any, frame: Frame, id: string): Any;
  answer(payload: Uint8Array): void;
}

export function bridge(limits: ProgramLimits, recorder: () => Recorder, load: (name: string) => Body | null): Bridge {
  const references = new $WeakMap<object, Reference>();
  const waiting = new $Map<number, (r: Reply) => void>();
  let nextID = 1;

  const proxy = (r: Reference): Any => {
    const target = r.kind === "tool" ? (args: unknown) => invoke(r, args) : r.kind === "server" ? () => {} : create(null);
    const p = new $Proxy(target, new Handler(r));
    weakSet(references, p, r);
    return p;
  };
  const label = (r: Reference): string => {
    const base = r.capability ? "capabilities" : "mcp";
    return r.kind === "root" ? base : r.kind === "server" ? `${base}.${r.server}` : r.capability ? `${base}.${r.tool}` : `${base}.${r.server}.${r.tool}${r.raw ? ".raw" : ""}`;
  };
  // One small object for each proxy: references are made for every use of mcp.
  class Handler {
    constructor(readonly r: Reference) {}
    get(target: Any, key: string | symbol): Any {
      return member(this.r, target, key);
    }
    apply(target: Any, self: unknown, args: unknown[]): unknown {
      if (this.r.kind === "tool") return apply(target, self, args);
      throw new $TypeError(`${label(this.r)} is a server, not a function: call ${label(this.r)}.<tool>(args)`);
    }
    construct(): never {
      throw new $TypeError(`${label(this.r)} is not a constructor: call it without new`);
    }
    readOnly(): never {
      throw new $TypeError(`${label(this.r)} is read-only`);
    }
    declare set: () => never;
    declare defineProperty: () => never;
    declare deleteProperty: () => never;
    declare setPrototypeOf: () => never;
  }
  const traps = Handler.prototype;
  traps.set = traps.defineProperty = traps.deleteProperty = traps.setPrototypeOf = traps.readOnly;
  setPrototypeOf(traps, null);

  const member = (r: Reference, target: Any, key: string | symbol): Any => {
    // No then: awaiting a reference must not call a tool of that name. What turns
    // an object into text must not either.
    if (key === "toString") return () => `[${label(r)}]`;
    if (typeof key === "symbol" || key === "then" || key === "toJSON" || key === "valueOf") return undefined;
    if (r.kind === "root") return proxy(r.capability ? { ...r, kind: "tool", tool: key } : { ...r, kind: "server", server: key });
    if (r.kind === "server") return proxy({ ...r, kind: "tool", tool: key });
    switch (key) {
      case "raw":
        return r.raw || r.capability ? undefined : proxy({ ...r, raw: true });
      case "call":
        return (_self: unknown, args: unknown) => invoke(r, args);
      case "apply":
        return (_self: unknown, args?: unknown[]) => invoke(r, args?.[0]);
      case "bind":
        return (_self: unknown, ...fixed: unknown[]) => fixed.length ? () => invoke(r, fixed[0]) : proxy(r);
    }
    return reflectGet(target, key);
  };

  // An error that is made here after an await carries the frames of those who await
  // this call, up to the line of the program: the engine keeps them for nothing.
  const invoke = async (r: Reference, args: unknown): Promise<unknown> => {
    const name = r.capability ? `capability:${r.tool}` : `${r.server}:${r.tool}`;
    const node = r.node || `?${name}`;
    if (r.capability) {
      recorder().event(r.frame, node, name);
      return await runCapability(r, args);
    }
    // First: only a call that is really sent is recorded.
    const text = argumentText(r, args);
    const rec = recorder();
    const records = rec.take();
    const recorded = rec.call(node);
    const id = nextID++;
    const sent = new $Promise<Reply>((resolve) => mapSet(waiting, id, resolve));
    send(Call, `${(r.raw ? 1 : 0) | (recorded ? 2 : 0)} ${r.frame.n | 0} ${rec.last()}\n${stringify(r.server)}\n${stringify(r.tool)}\n${stringify(node)}\n${records}\n${text}`, id);
    const reply = await sent;
    if (reply.failure) throw new ToolError(r.server, r.tool, reply.failure, id);
    return reply.value;
  };
  const argumentText = (r: Reference, args: unknown): string => {
    if (args === undefined || args === null) return "{}";
    if (typeof args !== "object") {
      throw new $TypeError(`${label(r)} takes one object with named arguments, not a ${typeof args}`);
    }
    const text = serialize(args, "args");
    if (exceeds(text, limits.argument)) {
      const message = `the arguments of ${r.server}:${r.tool} are larger than the limit of ${limits.argument} bytes`;
      throw new ToolError(r.server, r.tool, { message, code: "invalid_input", hint: "pass less data, or pass it in several calls" }, 0);
    }
    return text;
  };

  const runCapability = async (r: Reference, args: unknown): Promise<unknown> => {
    const refuse = (code: string, message: string, hint: string): never => {
      throw new ToolError("capability", r.tool, { message, code, hint }, 0);
    };
    const body = load(r.tool);
    if (!body) return refuse("unknown_capability", `there is no capability ${r.tool}`, "call one of the capabilities that were discovered, by its exact name");
    if (r.depth >= limits.depth) return refuse("too_many_calls", `capabilities call each other more than ${limits.depth} levels deep`, "a capability probably calls itself without end");
    const frame = recorder().capability(r.frame, r.tool);
    let ok = false;
    try {
      // Through JSON, as if it ran elsewhere: neither side can change the other's objects.
      const copy = parse(serialize(args ?? {}, "args"));
      const depth = r.depth + 1;
      const value = await body(mcp(frame, depth), capabilities(frame, depth), copy, depth, frame);
      const result = parse(serialize(value, `the result of capabilities.${r.tool}`));
      ok = true;
      return result;
    } finally {
      recorder().ended(frame, ok);
    }
  };

  const root = (capability: boolean, frame: Frame, depth: number) =>
    proxy({ kind: "root", capability, server: capability ? "capability" : "", tool: "", raw: false, frame, node: "", depth });
  const mcp = (frame: Frame, depth: number) => root(false, frame, depth);
  const capabilities = (frame: Frame, depth: number) => root(true, frame, depth);

  return {
    mcp,
    capabilities,
    bind(value, frame, id) {
      const r = value !== null && (typeof value === "object" || typeof value === "function") && weakGet(references, value);
      return r ? proxy({ ...r, frame, node: id }) : value;
    },
    answer(payload) {
      const id = u32(payload, 0);
      const resolve: ((r: Reply) => void) | undefined = mapGet(waiting, id);
      if (!resolve) return;
      mapDelete(waiting, id);
      let value: Any = null;
      let failure: CallFailure | null = null;
      try {
        value = parse(decode(subarray(payload, 13)));
        if (!payload[4]) failure = value;
      } catch {
        failure = { message: "the tool answered with something that is not JSON", code: "internal" };
      }
      resolve({ __proto__: null, value, failure } as Reply);
    },
  };
}
