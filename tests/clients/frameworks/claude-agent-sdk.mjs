// This framework calls tools only for a model, so the fake model plays the script.
import process from "node:process";
import { query } from "@anthropic-ai/claude-agent-sdk";
import { acceptLater, server } from "./play.mjs";

const options = {
  model: "claude-sonnet-4-5",
  mcpServers: { probe: "url" in server ? { type: "http", ...server } : { type: "stdio", ...server } },
  allowedTools: ["mcp__probe", "ToolSearch"],
  onElicitation: acceptLater,
};
for await (const message of query({ prompt: "Call the tools of the server probe.", options })) {
  if (message.type === "result") process.stdout.write(`${JSON.stringify(message.subtype)}\n`);
}
