// What the program finds in its global scope. This is not the boundary, which is
// the process; it takes the host's own machinery out of reach and says clearly what
// there is instead. Node's modules need Deno and process to initialise: once these
// are gone and as long as none was loaded before, node:fs, node:net and the like
// fail to load, and with them every way to a file descriptor.

import {
  $Error, $Map, $TypeError, $WeakSet, apply, defineProperty, floor, imul, mapDelete, mapEach, mapGet, mapSet, max, weakAdd, weakHas,
} from "./primordials.ts";
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

// Clock is the program's time where it is fixed. Events move it: the answer to a
// call to when that came, a timer to when it was due. Between events each look at it
// is one millisecond after the one before, so that no program waits in vain. With
// the same answers at the same times a program sees the same again.
export interface Clock {
  // advance lets every timer fire that is due before a time, and sets the clock to it.
  advance(to: number): Promise<void>;
}

interface Timer {
  due: number;
  every: number; // milliseconds between two; 0 for once
  real: Any; // the host's timer
  run: () => void;
}

const real = { setTimeout, clearTimeout };

// settle gives what an event has resolved the turns to go on before the next event.
const settleTurns = 64;
export async function settle(): Promise<void> {
  for (let turn = 0; turn < settleTurns; turn++) await undefined;
}

// determine fixes what the program sees of time and chance. uncaught is told what a
// timer throws.
export function determine(seed: Seed, uncaught: (e: unknown) => void): Clock {
  let time = seed.now;
  const now = () => time++;
  const timers = timersOf((due) => time = time > due ? time : due, () => time, uncaught);
  chance(seed.random);
  const $Date = Date;
  const Fixed = new Proxy($Date, {
    construct: (t, args, self) => Reflect.construct(t, args.length ? args : [now()], self),
    apply: () => new $Date(now()).toString(),
  });
  put($Date, "now", now);
  put($Date.prototype, "constructor", Fixed);
  put(globalThis, "Date", Fixed);
  put(performance, "now", () => now() - seed.now);
  return {
    async advance(to) {
      await timers.before(to);
      if (to > time) time = to;
    },
  };
}

// timersOf puts timers in the global scope whose order depends on the clock alone.
// reached moves the clock to when one was due.
function timersOf(reached: (due: number) => void, time: () => number, uncaught: (e: unknown) => void) {
  const waiting = new $Map<number, Timer>();
  let next = 1;
  const fire = (id: number, t: Timer): void => {
    reached(t.due);
    if (t.every) start(id, t, t.every);
    else mapDelete(waiting, id);
    t.run();
  };
  const start = (id: number, t: Timer, delay: number): void => {
    t.due += delay;
    t.real = real.setTimeout(() => fire(id, t), delay);
  };
  const add = (repeat: boolean) => (f: Any, delay?: unknown, ...args: unknown[]): number => {
    if (typeof f !== "function") throw new $TypeError("a timer needs a function");
    const ms = max(1, floor(Number(delay)) || 0);
    const id = next++;
    const t: Timer = { due: time(), every: repeat ? ms : 0, real: 0, run: () => void apply(f, undefined, args) };
    mapSet(waiting, id, t);
    start(id, t, ms);
    return id;
  };
  const clear = (id: Any): void => {
    const t: Timer | undefined = mapGet(waiting, id);
    if (!t) return;
    mapDelete(waiting, id);
    real.clearTimeout(t.real);
  };
  put(globalThis, "setTimeout", add(false));
  put(globalThis, "setInterval", add(true));
  put(globalThis, "clearTimeout", clear);
  put(globalThis, "clearInterval", clear);
  const first = (to: number): [number, Timer] | null => {
    let found: [number, Timer] | null = null;
    mapEach(waiting, (t: Timer, id: number) => {
      if (t.due <= to && (!found || t.due < found[1].due)) found = [id, t];
    });
    return found;
  };
  return {
    async before(to: number): Promise<void> {
      for (let due = first(to); due; due = first(to)) {
        const [id, t] = due;
        real.clearTimeout(t.real);
        try {
          fire(id, t);
        } catch (e) {
          uncaught(e);
        }
        await settle();
      }
    },
  };
}

// chance makes everything random follow from a seed.
function chance(seed: number): void {
  let state = seed >>> 0;
  const random32 = () => { // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let t = imul(state ^ (state >>> 15), 1 | state);
    t = (t + imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  put(Math, "random", () => random32() / 4294967296);
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
