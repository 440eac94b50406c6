// An editor on the TypeScript SDK: drives each method once, and prints what came of it as JSON.
// Arguments: the module of the SDK, the kind of option to choose, the command of the agent.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [, , module, choice, ...command] = process.argv;
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(module));
const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => child.on("exit", resolve));
const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const kinds = new Set();
let said = "";

const editor = client({ name: "test" })
  .onNotification(methods.client.session.update, ({ params }) => {
    kinds.add(params.update.sessionUpdate);
    if (params.update.sessionUpdate === "agent_message_chunk") said += params.update.content.text;
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    // what a server says of its tools is asked with two options, and allowed
    const wanted = params.options.length === 2 ? "allow_always" : choice;
    const option = params.options.find((each) => each.kind === wanted);
    if (!option) return { outcome: { outcome: "cancelled" } };
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  });

const out = {};
await editor.connectWith(stream, async (agent) => {
  const call = async (name, method, params) => {
    try {
      out[name] = (await agent.request(method, params)) ?? {};
    } catch (error) {
      out[name] = { error: error.code };
    }
    return out[name];
  };
  const { session } = methods.agent;
  const where = { cwd: process.cwd(), mcpServers: [] };
  await call("initialize", methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const { sessionId } = await call("new", session.new, where);
  const prompt = [{ type: "text", text: "read it" }];
  await call("prompt", session.prompt, { sessionId, prompt });
  await call("setMode", session.setMode, { sessionId, modeId: "unattended" });
  const option = { sessionId, configId: "mode", value: "ask" };
  await call("setConfigOption", session.setConfigOption, option);
  await call("list", session.list, {});
  await call("close", session.close, { sessionId });
  await call("load", session.load, { sessionId, ...where });
  await call("resume", session.resume, { sessionId, ...where });
  await agent.notify(session.cancel, { sessionId });
  await call("logout", methods.agent.logout, {});
  await call("authenticate", methods.agent.authenticate, { methodId: "none" });
  await call("delete", session.delete, { sessionId });
});
child.stdin.end();
const code = await exited;
console.log(JSON.stringify({ ...out, said, kinds: [...kinds], code }));
