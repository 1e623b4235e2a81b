// The protocol, both sides. Keep this text and the names equal in
// internal/sandbox/wire/frame.go and sandbox-runtime/protocol.ts.
//
//	frame   = u32le length of payload, u8 kind, payload
//	Boot    B  gateway → worker  JavaScript: the runtime, read by boot.ts
//	Hello   H  both ways         u32le version
//	Start   P  gateway → worker  JSON Program
//	Answer  A  gateway → worker  u32le call id, u8 ok (1 or 0), f64le milliseconds of the
//	                             program's clock (0: not told), JSON value or CallFailure
//	Call    C  worker → gateway  u32le call id, then lines: flags (1 raw, 2 recorded),
//	                             frame and order; server, tool and node, each a JSON
//	                             string; records as a JSON array, or nothing; JSON args
//	Log     L  worker → gateway  UTF-8 text of one entry
//	Report  G  worker → gateway  JSON Progress
//	Trace   T  worker → gateway  JSON Trailer, once, right before the final frame
//	Done    D  worker → gateway  JSON value: the result; final
//	Fail    E  worker → gateway  JSON Failure; final
//
// The gateway sends Boot, Hello and later Start; the worker answers Hello when it is
// warm. After its final frame a worker is silent and the gateway kills it.

import { $Float64Array, $Uint8Array, copyWithin, encode, encodeInto, read, readSync, setBytes, subarray, writeSync } from "./primordials.ts";

export const Version = 2;

export const Boot = 0x42; // only boot.ts reads one
export const Hello = 0x48;
export const Start = 0x50;
export const Answer = 0x41;
export const Call = 0x43;
export const Log = 0x4c;
export const Report = 0x47;
export const Trace = 0x54;
export const Done = 0x44;
export const Fail = 0x45;

export interface Program {
  source: string;
  args: unknown;
  capabilities: Record<string, string>;
  limits: ProgramLimits;
  seed?: Seed;
}

export interface ProgramLimits {
  argument: number;
  result: number;
  logLines: number;
  logBytes: number;
  records: number;
  depth: number;
}

export interface Seed {
  now: number;
  random: number;
}

export interface CallFailure {
  message: string;
  code?: string;
  hint?: string;
  content?: unknown;
}

export interface Failure {
  kind: "syntax" | "thrown" | "tool" | "result" | "output" | "unsupported";
  name: string;
  message: string;
  stack?: string;
  unit?: string;
  callId?: number;
  server?: string;
  tool?: string;
  size?: number;
}

const header = 5;
const small = new $Uint8Array(64 << 10);

// The warm-up runs the whole path into a function instead of into stdout.
let sink: ((frame: Uint8Array) => void) | null = null;
let closed = false;

export function redirect(to: ((frame: Uint8Array) => void) | null): void {
  sink = to;
  closed = false;
}

export const u32 = (p: Uint8Array, o: number): number => (p[o] | (p[o + 1] << 8) | (p[o + 2] << 16) | (p[o + 3] << 24)) >>> 0;

// f64 copies, because a number must begin at a multiple of its size.
export function f64(p: Uint8Array, o: number): number {
  const bytes = new $Uint8Array(8);
  setBytes(bytes, subarray(p, o, o + 8));
  return new $Float64Array(bytes.buffer)[0];
}

export function putU32(p: Uint8Array, o: number, v: number): void {
  p[o] = v & 255;
  p[o + 1] = (v >>> 8) & 255;
  p[o + 2] = (v >>> 16) & 255;
  p[o + 3] = v >>> 24;
}

function write(frame: Uint8Array): void {
  if (sink) return sink(frame);
  for (let o = 0; o < frame.length;) o += writeSync(o === 0 ? frame : subarray(frame, o));
}

let used = 0; // bytes of small that have not been written yet: calls
let flushing = false;

function flush(): void {
  if (used === 0) return;
  const frames = subarray(small, 0, used);
  used = 0;
  write(frames);
}

// soon flushes once the code that runs now has yielded. A burst of calls, as for
// Promise.all, is one write: one system call and one wake-up instead of a hundred.
async function soon(): Promise<void> {
  flushing = true;
  await undefined;
  flushing = false;
  flush();
}

// send writes one frame, and what waits before it. Frames stay in order, a full pipe
// holds the program back, and all but calls are written before send returns: they
// reach the gateway even if the program never yields again. Done and Fail are final:
// whatever the program still does stays unsaid.
export function send(kind: number, text: string, id = -1): void {
  if (closed) return;
  closed = kind === Done || kind === Fail;
  const start = id < 0 ? header : header + 4;
  const most = start + text.length * 3;
  if (used + most > small.length) flush();
  if (most <= small.length) {
    const size = encodeInto(text, subarray(small, used + start));
    head(small, used, kind, size + start - header, id);
    used += start + size;
    if (kind !== Call || sink) flush();
    else if (!flushing) void soon();
    return;
  }
  const body = encode(text);
  const frame = new $Uint8Array(start + body.length);
  setBytes(frame, body, start);
  head(frame, 0, kind, body.length + start - header, id);
  write(frame);
}

function head(frame: Uint8Array, o: number, kind: number, size: number, id: number): void {
  putU32(frame, o, size);
  frame[o + 4] = kind;
  if (id >= 0) putU32(frame, o + header, id);
}

export function sendHello(): void {
  const frame = new $Uint8Array(header + 4);
  putU32(frame, 0, 4);
  frame[4] = Hello;
  putU32(frame, header, Version);
  write(frame);
}

// Turns of the microtask queue between handling frames and the next read: what an
// answer resolved gets to send its own frames first, which saves a wake-up.
const drainTurns = 8;

// serve calls handle for every frame until end of input. The payload is only valid
// until its promise resolves. Idle is a blocking read on the main thread: no event loop, no
// other thread. It is asynchronous as soon as the program runs, so that timers do.
export async function serve(handle: (kind: number, payload: Uint8Array) => Promise<void>, started: () => boolean): Promise<void> {
  let buffer = new $Uint8Array(64 << 10);
  let have = 0;
  for (;;) {
    let n: number | null;
    if (started()) {
      for (let turn = 0; turn < drainTurns; turn++) await undefined;
      n = await read(have ? subarray(buffer, have) : buffer);
    } else {
      n = readSync(have ? subarray(buffer, have) : buffer);
    }
    if (n === null) return;
    have += n;
    let o = 0;
    while (have - o >= header) {
      const size = header + u32(buffer, o);
      if (have - o < size) {
        if (size > buffer.length) { // exactly one frame's room: no growing, no copying twice
          const room = new $Uint8Array(size);
          setBytes(room, subarray(buffer, o, have), 0);
          buffer = room;
          have -= o;
          o = 0;
        }
        break;
      }
      await handle(buffer[o + 4], subarray(buffer, o + header, o + size));
      o += size;
    }
    if (o) copyWithin(buffer, 0, o, have);
    have -= o;
    if (have === 0 && buffer.length > 1 << 20) buffer = new $Uint8Array(64 << 10);
  }
}
