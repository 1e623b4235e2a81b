// The recorder __t: what the marks call that the analyser puts into a program. It
// notes events in frames; a frame is one execution of the program, a capability, a
// function, a pass of a loop or a callback. Nothing here awaits, adds a microtask
// or changes a value: each mark returns its argument.

import { $String, $TypeError, apply, create, isArray, matches, stringify } from "./primordials.ts";

// deno-lint-ignore no-explicit-any
type Any = any;

export interface Frame {
  n: number;
  region?: string; // the loop or fork this frame is one pass of
  fork?: string; // the fork whose branch this frame runs in
  branch?: number;
  taken?: Record<string, boolean>; // logical assignments whose right side was evaluated
  open?: Record<string, boolean>; // switches that wait for their first mark
  passes?: Record<string, number>;
}

// What a synchronous call mark leaves for the frame that its callee opens.
interface Pending {
  frame: Frame;
  fork?: string;
  branch?: number;
  region?: string;
}

export interface Recorder {
  marks: Any; // the object __t
  root: Frame;
  // call counts a call of a tool, whose record is the Call frame itself; false when
  // there is no room for it any more. last is its order then.
  call(id: string): boolean;
  last(): number;
  // event notes a call of a capability.
  event(frame: Frame, id: string, tool: string): void;
  capability(parent: Frame, name: string): Frame;
  // ended notes how the body of a capability, which began in the frame, has ended.
  ended(frame: Frame, ok: boolean): void;
  // take returns the JSON array of the records since the last time, or nothing.
  take(): string;
  // rest returns the JSON members of what was left out, with leading commas.
  rest(): string;
}

const dotted = /^[\w.]+$/;

// bind gives a reference to tools the frame and the node that it is used at.
export function recorder(limit: number, bind: (value: Any, frame: Frame, id: string) => Any): Recorder {
  let sequence = 0;
  let frames = 1;
  let noted = 0;
  let truncated = false;
  let buffer = "";
  let pending: Pending | null = null;
  const counts: Record<string, number> = create(null);
  const root: Frame = { n: 0 };

  const room = (id: string): boolean => {
    if (noted < limit) {
      noted++;
      return true;
    }
    truncated = true;
    counts[id] = (counts[id] ?? 0) + 1;
    return false;
  };
  const note = (type: string, frame: number, id: string, more: string): void => {
    const q = sequence++;
    if (!room(id)) return;
    buffer += `${buffer ? "," : ""}{"t":"${type}","q":${q},"f":${frame}${id ? `,"id":${stringify(id)}` : ""}${more}}`;
  };
  const text = (key: string, value: unknown): string => value === undefined || value === null ? "" : `,"${key}":${stringify($String(value))}`;
  const int = (key: string, value: unknown): string => value ? `,"${key}":${(value as number) | 0}` : "";
  const frameOf = (s: Any): number => s.n | 0;

  const open = (parent: Frame, name: string | null, cap: string | null, fork?: string, branch?: number): Frame => {
    const f: Frame = { n: frames++, fork, branch };
    note("frame", f.n, "", int("p", frameOf(parent)) + text("name", name) + text("cap", cap) + text("r", fork) + int("b", branch));
    return f;
  };
  const decide = (s: Frame, id: string, outcome: string): void => void note("dec", frameOf(s), id, text("o", outcome));

  // pass opens the frame of one pass of region id, unless a y mark just did.
  const pass = (s: Frame, id: string): Frame => {
    const p = pending;
    if (p && p.region === id) {
      pending = null;
      return p.frame;
    }
    const passes = s.passes ??= create(null) as Record<string, number>;
    const k = passes[id] = (passes[id] ?? -1) + 1;
    const f: Frame = { n: frames++, region: id };
    note("iter", f.n, id, int("p", frameOf(s)) + int("k", k));
    return f;
  };
  // during runs fn with p left for the frame that it opens first.
  const during = (p: Pending, self: unknown, fn: Any, args: unknown[]): unknown => {
    pending = p;
    try {
      return apply(fn, self, args);
    } finally {
      pending = null;
    }
  };

  const marks = {
    m: (s: Frame, id: string, value: Any) => bind(value, s, id),
    d: (s: Frame, id: string, v: unknown) => (decide(s, id, v ? "true" : "false"), v),
    n: (s: Frame, id: string, v: unknown) => (decide(s, id, v !== null && v !== undefined ? "true" : "false"), v),
    k: (s: Frame, id: string, outcome: string) => {
      decide(s, id, outcome);
      (s.taken ??= create(null) as Record<string, boolean>)[id] = true;
    },
    a: (s: Frame, id: string, outcome: string, v: unknown) => {
      if (s.taken?.[id]) s.taken[id] = false;
      else decide(s, id, outcome);
      return v;
    },
    w: (s: Frame, id: string, v: unknown) => {
      (s.open ??= create(null) as Record<string, boolean>)[id] = true;
      return v;
    },
    o: (s: Frame, id: string, outcome: string) => {
      if (!s.open?.[id]) return;
      s.open[id] = false;
      decide(s, id, outcome);
    },
    // of: 1 for for-of, 2 for for-await; the engine's own message would show the mark.
    l: (s: Frame, id: string, v: Any, of?: number, source?: string) => {
      note("loop", frameOf(s), id, "");
      if (of && !iterable(v, of)) {
        const what = (v === null || v === undefined) && !matches(dotted, source ?? "") ? $String(v) : source;
        throw new $TypeError(`${what} is not ${of > 1 ? "async " : ""}iterable`);
      }
      return v;
    },
    i: pass,
    h: (lexical: Frame, name: string, fork?: string, branch?: number): Frame => {
      const p = pending;
      pending = null;
      const from = p?.fork ? p : { fork, branch };
      return open(p ? p.frame : lexical, name, null, from.fork, from.branch);
    },
    f: (s: Frame, id: string, v: unknown) => (note("fork", frameOf(s), id, ""), v),
    j: (s: Frame, id: string, v: unknown) => (note("join", frameOf(s), id, ""), v),
    x: (s: Frame, fn: Any, fork?: string, branch?: number) =>
      typeof fn !== "function" ? fn : function (this: unknown, ...args: unknown[]) {
        return during({ frame: s, fork, branch }, this, fn, args);
      },
    y: (s: Frame, id: string, fn: Any) =>
      typeof fn !== "function" ? fn : function (this: unknown, ...args: unknown[]) {
        const frame = pass(s, id);
        return during({ frame, region: id, fork: frame.fork, branch: frame.branch }, this, fn, args);
      },
  };

  return {
    marks,
    root,
    call: (id) => (sequence++, room(id)),
    last: () => sequence - 1,
    event: (frame, id, tool) => note("call", frameOf(frame), id, text("tool", tool)),
    capability: (parent, name) => open(parent, null, name),
    ended: (frame, ok) => note("end", frameOf(frame), "", text("o", ok ? "ok" : "error")),
    take() {
      const out = buffer && `[${buffer}]`;
      buffer = "";
      return out;
    },
    rest: () => truncated ? `,"truncated":true,"counts":${stringify(counts)}` : "",
  };
}

function iterable(v: Any, of: number): boolean {
  if (v === null || v === undefined) return false;
  return isArray(v) || typeof v[Symbol.iterator] === "function" || (of > 1 && typeof v[Symbol.asyncIterator] === "function");
}
