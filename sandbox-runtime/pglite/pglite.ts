// The embedded database: PGlite (PostgreSQL as WASM), one backend in this process,
// strictly synchronous once it is up. The other side of the protocol is
// internal/store/pglite/frame.go.
//
//   arguments       DATA_DIR [CAP_MB] [NAME=VALUE ...]   (server settings)
//   child → parent  after start-up one answer: the JSON of Hello
//   parent → child  u32be n | n bytes    one unit of front-end messages, up to Sync or Query
//                   u32be 0              ask for statistics
//   child → parent  (u32be n | n bytes)* | u32be 0    the answer to a unit, or the JSON of Stats
//   stdin EOF       shutdown checkpoint, exit 0
//
// Exit codes: 3 could not start, 70 PostgreSQL died (PANIC, stack overflow, I/O error).
import { PGlite } from "@electric-sql/pglite";
import { NodeFS } from "@electric-sql/pglite/nodefs";
import { vector } from "@electric-sql/pglite-pgvector";
import fs from "node:fs";

const PROTOCOL = 1;
const EXIT_START = 3;
const EXIT_DEAD = 70;

// What is used of Emscripten's module; it has no types of its own.
interface Stream {
  nfd?: number;
}
interface Module {
  FS: {
    filesystems: { NODEFS: { stream_ops: { fsync?: (stream: Stream) => number } } };
    ErrnoError: new (errno: number) => Error;
  };
  HEAPU8: Uint8Array;
  _PostgresMainLoopOnce: () => unknown;
  _PostgresMainLongJmp: () => unknown;
}

// stdout is the protocol: nothing else may be written to it.
console.log = console.info = console.debug = console.error;

const [dataDir, capMB, ...settings] = Deno.args;

/** NodeFS whose fsync reaches the disk: PGlite's file system has no such operation. */
class DurableFS extends NodeFS {
  syncs = 0;
  syncMs = 0;

  // deno-lint-ignore no-explicit-any
  override async init(pg: any, opts: any) {
    const result = await super.init(pg, opts);
    const hooks = result.emscriptenOpts.preRun as unknown as ((mod: Module) => void)[];
    hooks.push((mod) => {
      mod.FS.filesystems.NODEFS.stream_ops.fsync = (stream) => this.#sync(mod, stream);
    });
    return result;
  }

  #sync(mod: Module, stream: Stream): number {
    if (!stream.nfd) return 0;
    const before = performance.now();
    try {
      fs.fsyncSync(stream.nfd);
    } catch (e) {
      // Some file systems refuse to sync a directory; PostgreSQL ignores that as well.
      const code = (e as { code?: string }).code;
      if (code !== "EINVAL" && code !== "EBADF") throw new mod.FS.ErrnoError(29); // EIO: PostgreSQL panics, as it should
    }
    this.syncs++;
    this.syncMs += performance.now() - before;
    return 0;
  }
}

/** Holds PGlite's memory to a cap, so that a greedy query ends in PostgreSQL's own
 *  "out of memory" and not in a process of 2 GB: WASM never gives memory back. */
function capMemory(megabytes: number): void {
  if (!megabytes) return;
  const Real = WebAssembly.Memory;
  const pages = megabytes * 16;
  function Capped(d: WebAssembly.MemoryDescriptor) {
    return new Real({ ...d, maximum: Math.min(d.maximum ?? pages, pages) });
  }
  Capped.prototype = Real.prototype;
  (WebAssembly as unknown as { Memory: unknown }).Memory = Capped;
}

/** PGlite's loop swallows every exception and tries again: after a PANIC or a stack
 *  overflow it would spin for ever. All but PostgreSQL's own error jump (status 100)
 *  end this process; recovery at the next start puts things right. */
function dieOnPanic(mod: Module): void {
  for (const name of ["_PostgresMainLoopOnce", "_PostgresMainLongJmp"] as const) {
    const original = mod[name];
    mod[name] = () => {
      try {
        return original();
      } catch (e) {
        if ((e as { status?: number })?.status !== 100) {
          console.error(`pglite: fatal in ${name}:`, e);
          Deno.exit(EXIT_DEAD);
        }
        throw e;
      }
    };
  }
}

async function open(disk: DurableFS): Promise<PGlite> {
  // -F would turn fsync off; fdatasync is a no-op in PGlite's C library.
  const startParams = PGlite.defaultStartParams.filter((p) => p !== "-F");
  for (const s of ["wal_sync_method=fsync", ...settings]) startParams.push("-c", s);
  const db = new PGlite({
    fs: disk,
    extensions: { vector },
    startParams,
    onStderr: (line: string) => {
      console.error(line);
      return false;
    },
    // deno-lint-ignore no-explicit-any
  } as any);
  await db.waitReady;
  dieOnPanic(moduleOf(db));
  return db;
}

function moduleOf(db: PGlite): Module {
  return (db as unknown as { Module: Module }).Module;
}

/** Fills buf from stdin; false at the end of input. */
function read(buf: Uint8Array): boolean {
  for (let have = 0; have < buf.length;) {
    const n = Deno.stdin.readSync(buf.subarray(have));
    if (n === null) return false;
    have += n;
  }
  return true;
}

/** Gathers an answer and writes it in frames; the last frame carries the end mark. */
class Answer {
  static readonly SIZE = 256 * 1024;
  #buf = new Uint8Array(Answer.SIZE + 8);
  #view = new DataView(this.#buf.buffer);
  #used = 0;

  add = (data: Uint8Array): void => {
    for (let done = 0; done < data.length;) {
      const n = Math.min(data.length - done, Answer.SIZE - this.#used);
      this.#buf.set(data.subarray(done, done + n), 4 + this.#used);
      this.#used += n;
      done += n;
      if (this.#used === Answer.SIZE) this.#frame(4 + this.#used);
    }
  };

  json(value: unknown): void {
    this.#used = 0;
    this.add(new TextEncoder().encode(JSON.stringify(value)));
  }

  end(): void {
    this.#view.setUint32(4 + this.#used, 0);
    if (this.#used) this.#frame(8 + this.#used);
    else this.#write(this.#buf.subarray(4, 8));
  }

  #frame(length: number): void {
    this.#view.setUint32(0, this.#used);
    this.#write(this.#buf.subarray(0, length));
    this.#used = 0;
  }

  #write(b: Uint8Array): void {
    for (let done = 0; done < b.length;) done += Deno.stdout.writeSync(b.subarray(done));
  }
}

async function serve(db: PGlite, disk: DurableFS): Promise<void> {
  const answer = new Answer();
  const emptyQuery = new Uint8Array([0x51, 0, 0, 0, 5, 0]);
  // The streaming call installs a hook for raw answers that the synchronous call goes on using.
  await db.execProtocolRawStream(emptyQuery, { onRawData: answer.add, syncToFs: false });
  answer.json({ protocol: PROTOCOL });
  answer.end();

  const header = new Uint8Array(4);
  const length = new DataView(header.buffer);
  let unit = new Uint8Array(64 * 1024);
  for (let count = 1; read(header); count++) {
    // Nothing else yields to the event loop, which runs the garbage collector's finalizers.
    if (count % 4096 === 0) await new Promise((r) => setTimeout(r, 0));
    const n = length.getUint32(0);
    if (n === 0) {
      const { rss } = Deno.memoryUsage();
      answer.json({ rss, wasm: moduleOf(db).HEAPU8.length, syncs: disk.syncs, sync_ms: disk.syncMs, units: count });
    } else {
      const tooSmall = unit.length < n;
      const wasteful = unit.length > 1 << 20 && n < 1 << 16;
      if (tooSmall || wasteful) unit = new Uint8Array(Math.max(n, 64 * 1024));
      if (!read(unit.subarray(0, n))) return;
      db.execProtocolRawSync(unit.subarray(0, n));
    }
    answer.end();
  }
}

capMemory(Number(capMB));
const disk = new DurableFS(dataDir);
let db: PGlite;
try {
  db = await open(disk);
} catch (e) {
  console.error("pglite: start:", e);
  Deno.exit(EXIT_START);
}
await serve(db, disk);
await db.close();
Deno.exit(0);
