// The official TypeScript client drives one conversation and prints what it saw, as one JSON line.
//
//   node official.mjs '{"sdk": PATH, "command": [...], "env": {...}, "folder": PATH, "prompts": [...]}'
//
// The last prompt is cancelled at its first word.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const { sdk, command, env, folder, prompts } = JSON.parse(process.argv[2]);
const acp = await import(pathToFileURL(sdk));
const [program, ...args] = command;
const agent = spawn(program, args, { env, cwd: folder, stdio: ["pipe", "pipe", "ignore"] });
const left = new Promise((resolve) => agent.once("exit", resolve));

const seen = { stops: [], permissions: 0, text: "", others: [], exit: null };
let onText = () => {};

const app = acp
  .client({ name: "official" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    seen.permissions += 1;
    const allow = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    const { update } = params;
    if (update.sessionUpdate !== "agent_message_chunk") return;
    seen.text += update.content.text ?? "";
    onText();
  })
  .onNotification("*", ({ method }) => void seen.others.push(method));

const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await app.connectWith(stream, async (context) => {
  const hello = await context.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  seen.protocol = hello.protocolVersion;
  const opened = await context.request(acp.methods.agent.session.new, {
    cwd: folder,
    mcpServers: [],
  });
  const { sessionId } = opened;
  const mode = { sessionId, modeId: "default" };
  await context.request(acp.methods.agent.session.setMode, mode);
  for (const [index, text] of prompts.entries()) {
    onText = () => {};
    if (index === prompts.length - 1) {
      onText = () => {
        onText = () => {};
        context.notify(acp.methods.agent.session.cancel, { sessionId });
      };
    }
    const prompt = [{ type: "text", text }];
    const answer = await context.request(acp.methods.agent.session.prompt, { sessionId, prompt });
    seen.stops.push(answer.stopReason);
  }
});
agent.stdin.end();
seen.exit = await left;
console.log(JSON.stringify(seen));
