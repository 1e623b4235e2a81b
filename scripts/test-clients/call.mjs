// Calls tools of an MCP server as a client application would, and prints one JSON
// line with the negotiated protocol, the tools and the answers.
// Usage: node call.mjs '{"sdk": "v1"|"v2", "era": "legacy"|"modern", "modules": DIR,
//   "stdio": {command, args, env} | "http": URL, "calls": [{name, arguments}],
//   "persons": [{action, content}]}': what the person answers who is asked, in turn.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const job = JSON.parse(process.argv[2]);
const require = createRequire(pathToFileURL(join(job.modules, "package.json")));
const load = (specifier) => import(pathToFileURL(require.resolve(specifier)).href);

const transportOf = async (stdioModule, httpModule) => {
  if (job.stdio) {
    const { StdioClientTransport } = await load(stdioModule);
    return new StdioClientTransport({ ...job.stdio, stderr: "inherit" });
  }
  const { StreamableHTTPClientTransport } = await load(httpModule);
  return new StreamableHTTPClientTransport(new URL(job.http));
};

const asked = [];
const person = (request) => {
  asked.push(request.params.message);
  return job.persons[Math.min(asked.length, job.persons.length) - 1];
};
const capabilities = job.persons ? { elicitation: {} } : {};

const connect = async () => {
  const info = { name: `test-client-${job.sdk}`, version: "1.0.0" };
  if (job.sdk === "v1") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const client = new Client(info, { capabilities });
    if (job.persons) {
      const { ElicitRequestSchema } = await load("@modelcontextprotocol/sdk/types.js");
      client.setRequestHandler(ElicitRequestSchema, person);
    }
    const transport = await transportOf("@modelcontextprotocol/sdk/client/stdio.js", "@modelcontextprotocol/sdk/client/streamableHttp.js");
    await client.connect(transport);
    return client;
  }
  const { Client } = await load("@modelcontextprotocol/client");
  const versionNegotiation = { mode: job.era === "modern" ? { pin: "2026-07-28" } : "legacy" };
  const client = new Client(info, { capabilities, versionNegotiation });
  if (job.persons) client.setRequestHandler("elicitation/create", person);
  await client.connect(await transportOf("@modelcontextprotocol/client/stdio", "@modelcontextprotocol/client"));
  return client;
};

const client = await connect();
const progress = [];
const call = ({ name, arguments: args }) => {
  const options = { timeout: 120_000, onprogress: (p) => progress.push(p) };
  return job.sdk === "v1"
    ? client.callTool({ name, arguments: args }, undefined, options)
    : client.callTool({ name, arguments: args }, options);
};

const { tools } = await client.listTools();
const answers = [];
for (const c of job.calls) answers.push(await call(c));
const protocol = client.getNegotiatedProtocolVersion?.() ?? client.transport?.protocolVersion ?? client.transport?._protocolVersion ?? null;
console.log(JSON.stringify({ server: client.getServerVersion(), protocol, tools: tools.map((t) => t.name), answers, asked, progress: progress.length }));
await client.close();
