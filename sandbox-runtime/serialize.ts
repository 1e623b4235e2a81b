// From a value of the program to JSON text, without losing anything in silence:
// what JSON would drop or cannot say is an error that names the place.

import { $ObjectPrototype, $TypeError, charCodeAt, getPrototypeOf, isArray, keys, matches, stringify } from "./primordials.ts";

// NotJSON is thrown for a value that JSON cannot carry.
export class NotJSON extends $TypeError {}

// deno-lint-ignore no-explicit-any
type Any = any;

const maxDepth = 1000;
const plainName = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

// serialize returns the JSON of value; undefined becomes null. name is what the
// value is called in errors.
export function serialize(value: unknown, name: string): string {
  const problem = check(value, name, [], 0);
  if (problem) throw new NotJSON(problem);
  return stringify(value) ?? "null";
}

function check(value: Any, path: string, above: unknown[], depth: number): string {
  switch (typeof value) {
    case "bigint":
      return `${path} is a BigInt (${value}n)`;
    case "function":
      return `${path} is a function`;
    case "symbol":
      return `${path} is a symbol`;
    case "object":
      return value === null ? "" : checkObject(value, path, above, depth);
  }
  return "";
}

function checkObject(value: Any, path: string, above: unknown[], depth: number): string {
  if (depth >= maxDepth) return `${path} is nested more than ${maxDepth} levels deep`;
  for (let i = 0; i < depth; i++) {
    if (above[i] === value) return `${path} is a cycle: it contains itself`;
  }
  above[depth] = value;
  if (isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const problem = check(value[i], `${path}[${i}]`, above, depth + 1);
      if (problem) return problem;
    }
    return "";
  }
  if (typeof value.toJSON === "function") return ""; // a Date, a URL: says itself what it is in JSON
  const proto = getPrototypeOf(value);
  if (proto !== null && proto !== $ObjectPrototype) {
    const kind = proto.constructor?.name;
    return `${path} is an instance of ${typeof kind === "string" && kind ? kind : "a class"}`;
  }
  const names = keys(value);
  for (let i = 0; i < names.length; i++) {
    const key = names[i];
    const problem = check(value[key], matches(plainName, key) ? `${path}.${key}` : `${path}[${stringify(key)}]`, above, depth + 1);
    if (problem) return problem;
  }
  return "";
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
