// From a value of the program to JSON text, without losing anything in silence:
// what JSON would drop or cannot say is an error that names the place.

import { $ObjectPrototype, $TypeError, charCodeAt, getPrototypeOf, isArray, keys, matches, stringify } from "./primordials.ts";

// NotJSON is thrown for a value that JSON cannot carry.
export class NotJSON extends $TypeError {}

// deno-lint-ignore no-explicit-any
type Any = any;

const maxDepth = 1000;
const plainName = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

// Problem says what is wrong and where, from the value that was checked on. The place
// is put together on the way out, so that values without a problem cost no text.
interface Problem {
  at: string;
  is: string;
}

// serialize returns the JSON of value; undefined becomes null. name is what the
// value is called in errors.
export function serialize(value: unknown, name: string): string {
  const problem = check(value, [], 0);
  if (problem) throw new NotJSON(`${name}${problem.at} is ${problem.is}`);
  return stringify(value) ?? "null";
}

const here = (is: string): Problem => ({ at: "", is });

function inside(at: string, problem: Problem): Problem {
  problem.at = at + problem.at;
  return problem;
}

function check(value: Any, above: unknown[], depth: number): Problem | null {
  switch (typeof value) {
    case "bigint":
      return here(`a BigInt (${value}n)`);
    case "function":
      return here("a function");
    case "symbol":
      return here("a symbol");
    case "object":
      return value === null ? null : checkObject(value, above, depth);
  }
  return null;
}

function checkObject(value: Any, above: unknown[], depth: number): Problem | null {
  if (depth >= maxDepth) return here(`nested more than ${maxDepth} levels deep`);
  for (let i = 0; i < depth; i++) {
    if (above[i] === value) return here("a cycle: it contains itself");
  }
  above[depth] = value;
  if (isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const problem = check(value[i], above, depth + 1);
      if (problem) return inside(`[${i}]`, problem);
    }
    return null;
  }
  if (typeof value.toJSON === "function") return null; // a Date, a URL: says itself what it is in JSON
  const proto = getPrototypeOf(value);
  if (proto !== null && proto !== $ObjectPrototype) {
    const kind = proto.constructor?.name;
    return here(`an instance of ${typeof kind === "string" && kind ? kind : "a class"}`);
  }
  const names = keys(value);
  for (let i = 0; i < names.length; i++) {
    const key = names[i];
    const problem = check(value[key], above, depth + 1);
    if (problem) return inside(matches(plainName, key) ? `.${key}` : `[${stringify(key)}]`, problem);
  }
  return null;
}

// byteLength is the size of text in UTF-8.
export function byteLength(text: string): number {
  let n = text.length;
  for (let i = 0; i < text.length; i++) {
    const c = charCodeAt(text, i);
    if (c >= 0xd800 && c <= 0xdbff) { // a surrogate pair is four bytes
      n += 2;
      i++;
    } else if (c >= 0x800) n += 2;
    else if (c >= 0x80) n += 1;
  }
  return n;
}

// exceeds reports whether text is longer than limit in UTF-8; most texts are far from it.
export function exceeds(text: string, limit: number): boolean {
  return text.length * 3 > limit && (text.length > limit || byteLength(text) > limit);
}
