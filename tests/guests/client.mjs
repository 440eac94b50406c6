// Drives a gateway by the official TypeScript SDK, and prints what came of it as one JSON object.
// Arguments: the folder of the SDK; then either `stdio COMMAND ARGUMENT...` or `http URL AUTHORIZATION`.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, way, ...rest] = process.argv.slice(2);
const find = createRequire(`${folder}/package.json`);
const load = (name) => import(pathToFileURL(find.resolve(`@modelcontextprotocol/sdk/client/${name}`)));

const { Client } = await load("index.js");
let transport;
if (way === "stdio") {
  const { StdioClientTransport } = await load("stdio.js");
  const [command, ...args] = rest;
  transport = new StdioClientTransport({ command, args, env: process.env });
} else {
  const { StreamableHTTPClientTransport } = await load("streamableHttp.js");
  const [url, authorization] = rest;
  transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: authorization } },
  });
}

const client = new Client({ name: "guest", version: "1" });
await client.connect(transport);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const call = (arguments_) => client.callTool({ name: tools[0], arguments: arguments_ });
const allowed = await call({ step: 1, turn: 2 });
const denied = await call({ step: 99, turn: 2 });
const spent = await call({ step: 1, turn: 2 }).catch((error) => ({ _meta: error.data }));
await client.close();
process.stdout.write(JSON.stringify({ tools, allowed, denied, spent }) + "\n");
