// What the runtime uses after the user's program has started, captured before it
// can be changed. A program that breaks its own realm breaks only itself, but its
// frames and its errors must stay readable while it does.

const { bind, call } = Function.prototype;
// deno-lint-ignore no-explicit-any
type Any = any;
// deno-lint-ignore ban-types
const uncurry = bind.bind(call) as (f: Function) => (self: unknown, ...rest: Any[]) => Any;

export const { stdin, stdout, inspect } = Deno;
export const readSync = stdin.readSync.bind(stdin);
export const read = stdin.read.bind(stdin);
export const writeSync = stdout.writeSync.bind(stdout);

export const { parse, stringify } = JSON;
export const { isArray } = Array;
export const { create, defineProperty, getPrototypeOf, keys, setPrototypeOf } = Object;
export const { apply, get: reflectGet } = Reflect;
export const { floor, imul, max } = Math;

export const $Error = Error;
export const $Float64Array = Float64Array;
export const $Map = Map;
export const $Promise = Promise;
export const $Proxy = Proxy;
export const $String = String;
export const $TypeError = TypeError;
export const $Uint8Array = Uint8Array;
export const $WeakMap = WeakMap;
export const $WeakSet = WeakSet;
export const $ObjectPrototype = Object.prototype;

export const mapGet = uncurry(Map.prototype.get);
export const mapSet = uncurry(Map.prototype.set);
export const mapDelete = uncurry(Map.prototype.delete);
export const mapEach = uncurry(Map.prototype.forEach);
export const weakGet = uncurry(WeakMap.prototype.get);
export const weakSet = uncurry(WeakMap.prototype.set);
export const weakAdd = uncurry(WeakSet.prototype.add);
export const weakHas = uncurry(WeakSet.prototype.has);
export const then = uncurry(Promise.prototype.then);
export const slice = uncurry(String.prototype.slice);
export const charCodeAt = uncurry(String.prototype.charCodeAt);
export const matches = uncurry(RegExp.prototype.test);
export const subarray = uncurry(Uint8Array.prototype.subarray);
export const setBytes = uncurry(Uint8Array.prototype.set);
export const copyWithin = uncurry(Uint8Array.prototype.copyWithin);
export const instanceOf = uncurry(Function.prototype[Symbol.hasInstance]);

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const encode1 = uncurry(TextEncoder.prototype.encode);
const encodeInto1 = uncurry(TextEncoder.prototype.encodeInto);
const decode1 = uncurry(TextDecoder.prototype.decode);
export const encode = (text: string): Uint8Array => encode1(encoder, text);
export const encodeInto = (text: string, into: Uint8Array): number => encodeInto1(encoder, text, into).written;
export const decode = (bytes: Uint8Array): string => decode1(decoder, bytes);

// Indirect: the code sees the global scope, never the runtime's own names.
export const evaluate = globalThis.eval;
