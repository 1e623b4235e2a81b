// What the program finds in its global scope. This is not the boundary, which is
// the process; it takes the host's own machinery out of reach and says clearly what
// there is instead. Node's modules need Deno and process to initialise: once these
// are gone and as long as none was loaded before, node:fs, node:net and the like
// fail to load, and with them every way to a file descriptor.

import { $Error, $TypeError, $WeakSet, defineProperty, imul, weakAdd, weakHas } from "./primordials.ts";
import type { Seed } from "./protocol.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

const removed = [
  "Deno", "process", "Buffer", "global", "Worker", "WebSocket", "WebSocketStream", "WebAssembly", "EventSource", "BroadcastChannel", "localStorage",
  "sessionStorage", "Storage", "caches", "Cache", "CacheStorage", "navigator", "Navigator", "alert", "confirm", "prompt", "close", "closed", "location",
  "onload", "onunload", "onbeforeunload", "onerror", "onunhandledrejection", "addEventListener", "removeEventListener", "dispatchEvent", "reportError",
  "setImmediate", "clearImmediate", "Notification", "GPU", "window", "name",
];
const refused = ["fetch", "XMLHttpRequest", "require", "importScripts"];

const unsupported = new $WeakSet<object>();

// isUnsupported reports whether e says that the sandbox lacks something.
export const isUnsupported = (e: unknown): boolean => typeof e === "object" && e !== null && weakHas(unsupported, e);

export function lockDown(console: unknown): void {
  const scope = globalThis as Any;
  for (const key of removed) delete scope[key];
  for (const key of refused) {
    put(scope, key, () => {
      const e = new $TypeError(`${key} is not available in the sandbox: call a tool of mcp instead`);
      weakAdd(unsupported, e);
      throw e;
    });
  }
  put(scope, "console", console);
  $Error.stackTraceLimit = 30;
}

const put = (o: object, key: string, value: unknown) =>
  defineProperty(o, key, { __proto__: null, value, writable: true, configurable: true } as PropertyDescriptor);

// replay fixes what the program sees of time and chance: every look at the clock is
// one millisecond after the one before.
export function replay(seed: Seed): void {
  let ticks = 0;
  let state = seed.random >>> 0;
  const now = () => seed.now + ticks++;
  const random32 = () => { // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let t = imul(state ^ (state >>> 15), 1 | state);
    t = (t + imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  const $Date = Date;
  const Replayed = new Proxy($Date, {
    construct: (t, args, self) => Reflect.construct(t, args.length ? args : [now()], self),
    apply: () => new $Date(now()).toString(),
  });
  put($Date, "now", now);
  put($Date.prototype, "constructor", Replayed);
  put(globalThis, "Date", Replayed);
  put(Math, "random", () => random32() / 4294967296);
  put(performance, "now", () => ticks++);
  const fill = (a: Any) => {
    const bytes = new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
    for (let i = 0; i < bytes.length; i++) bytes[i] = random32() & 255;
    return a;
  };
  put(crypto, "getRandomValues", fill);
  put(crypto, "randomUUID", () => {
    const b = fill(new Uint8Array(16));
    b[6] = (b[6] & 15) | 64;
    b[8] = (b[8] & 63) | 128;
    const hex = Array.from(b as Uint8Array, (v) => v.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  });
}
