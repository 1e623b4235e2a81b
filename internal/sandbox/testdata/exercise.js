// What a program may still do inside the jail: what Deno needs for timers, memory,
// crypto, text, compression and code. One line for each, "ok" or what went wrong.
async function exercise(name, f) {
  try {
    const r = await f();
    console.log(name, r === false ? "wrong" : "ok");
  } catch (e) {
    console.log(name, String(e));
  }
}
await exercise("timer", () => new Promise((done) => setTimeout(() => done(true), 5)));
await exercise("interval", () => new Promise((done) => {
  const i = setInterval(() => (clearInterval(i), done(true)), 1);
}));
await exercise("digest", async () => (await crypto.subtle.digest("SHA-256", new Uint8Array(10))).byteLength === 32);
await exercise("key pair", async () => (await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"])).privateKey.type === "private");
await exercise("random", () => crypto.getRandomValues(new Uint8Array(4)).length === 4);
await exercise("uuid", () => crypto.randomUUID().length === 36);
await exercise("intl", () => new Intl.DateTimeFormat("de", { dateStyle: "full", timeZone: "Asia/Tokyo" }).format(0) === "Donnerstag, 1. Januar 1970");
await exercise("collator", () => ["ä", "a"].sort(new Intl.Collator("de").compare)[0] === "a");
await exercise("date", () => new Date(0).toISOString() === "1970-01-01T00:00:00.000Z");
await exercise("heap and collection", () => {
  let n = 0;
  for (let round = 0; round < 20; round++) n += Array.from({ length: 2e5 }, (_, i) => ({ i })).length;
  return n === 4e6;
});
await exercise("buffers", () => {
  let n = 0;
  for (let i = 0; i < 40; i++) n += new Uint8Array(5e6).fill(1)[i];
  return n === 40;
});
await exercise("hot loop", () => {
  let s = 0;
  for (let i = 0; i < 5e6; i++) s += i % 7;
  return s === 14999995;
});
await exercise("compression", async () => {
  const pipe = (body, stream) => new Response(body.pipeThrough(stream));
  const packed = await pipe(new Blob(["hello ".repeat(1000)]).stream(), new CompressionStream("gzip")).blob();
  return (await pipe(packed.stream(), new DecompressionStream("gzip")).text()).length === 6000;
});
await exercise("structured clone", () => structuredClone({ a: new Map([[1, 2]]) }).a.get(1) === 2);
await exercise("url", () => new URL("https://x.example/?a=1").searchParams.get("a") === "1");
await exercise("error stack", () => {
  try {
    null.x;
  } catch (e) {
    return e.stack.length > 10;
  }
});
await exercise("regular expression", () => /(\p{L}+)-(?<n>\d)/u.exec("äb-3").groups.n === "3");
await exercise("big integers", () => (2n ** 5000n).toString().length === 1506);
await exercise("atomics", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10) === "timed-out");
await exercise("deep recursion", () => {
  const down = (n) => n === 0 ? 0 : 1 + down(n - 1);
  return down(5000) === 5000;
});
await exercise("stack overflow", () => {
  const down = () => 1 + down();
  try {
    down();
  } catch (e) {
    return e instanceof RangeError;
  }
});
await exercise("streams", async () => {
  let n = 0;
  for await (const chunk of ReadableStream.from([1, 2, 3])) n += chunk;
  return n === 6;
});
await exercise("abort", () => AbortSignal.abort().aborted);
await exercise("text", () => new TextDecoder("utf-16le").decode(new Uint8Array([65, 0])) === "A");
