/**
 * `mcp call url [tool] [arguments]`: asks a server over HTTP.
 *
 * @module
 */
import { isObject } from "../protocol/jsonrpc.ts";
import type { Args } from "./args.ts";
import type { Command } from "./command.ts";
import { Problem } from "./problem.ts";

/** Lists the tools of a server, or calls one. */
export const call: Command = {
  name: "call",
  summary: "List the tools of a server over HTTP, or call one",
  usage: `call url [tool] [name=value ... | '{"name":value}']

For example:
  call http://127.0.0.1:3000/mcp
  call http://127.0.0.1:3000/mcp add a=2 b=3`,
  fails: "if the tool failed",
  flags: {},
  run: callServer,
};

async function callServer({ operands: [url, tool, ...words] }: Args): Promise<number> {
  if (url === undefined || !/^https?:/.test(url) || !URL.canParse(url)) {
    throw new Problem(`Cannot call ${url ?? "a server"}: give its URL, such as http://127.0.0.1:3000/mcp`);
  }
  if (tool === undefined) {
    const { tools } = await ask(url, "tools/list", {});
    console.log(Array.isArray(tools) ? tools.map(toLine).join("\n") : JSON.stringify(tools));
    return 0;
  }
  const result = await ask(url, "tools/call", { name: tool, arguments: readArguments(words) });
  console.log(toText(result));
  return result.isError ? 1 : 0;
}

function readArguments(words: readonly string[]): Record<string, unknown> {
  if (words.length === 1 && words[0].startsWith("{")) {
    const value = readValue(words[0]);
    if (isObject(value)) return value;
    throw new Problem(`Cannot read ${words[0]}: it is not a JSON object; check its quotes`);
  }
  return Object.fromEntries(words.map((word) => {
    const at = word.indexOf("=");
    if (at < 1) throw new Problem(`Cannot read ${word}: write an argument as name=value`);
    return [word.slice(0, at), readValue(word.slice(at + 1))];
  }));
}

// `a=2` is a number and `a=two` a text: JSON where it is JSON.
function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function ask(url: string, method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> {
  const version = "2026-07-28";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": version,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": version,
    "mcp-method": method,
  };
  if (typeof params.name === "string") headers["mcp-name"] = params.name;
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } });
  let response;
  try {
    response = await fetch(url, { method: "POST", headers, body });
  } catch (error) {
    throw new Problem(`Cannot reach ${url}: ${error instanceof Error ? error.message : error}; is the server running?`);
  }
  const { result, error } = readAnswer(await response.text());
  if (isObject(error)) throw new Problem(`Cannot ask ${url}: ${error.message} (${error.code})`);
  if (!isObject(result)) {
    throw new Problem(`Cannot ask ${url}: its answer (${response.status}) is not MCP; check the path`);
  }
  return result;
}

/** The answer in a JSON body, or the last event of a stream. */
function readAnswer(text: string): Record<string, unknown> {
  const last = text.split("\n").findLast((line) => line.startsWith("data: {"));
  const value = readValue(last ? last.slice(6) : text);
  return isObject(value) ? value : {};
}

function toLine(tool: unknown): string {
  return isObject(tool) ? [tool.name, tool.description ?? tool.title].filter(Boolean).join("  ") : "";
}

function toText({ content, ...rest }: Record<string, unknown>): string {
  if (!Array.isArray(content)) return JSON.stringify(rest, null, 2);
  return content.map((block) => isObject(block) && block.type === "text" ? block.text : JSON.stringify(block)).join(
    "\n",
  );
}
