/**
 * `mcp prompt`: lists the prompts of a server, or prints the messages of a prompt.
 */
import { type ListedPrompt, McpError, type Params } from "../client/client.ts";
import { INVALID_PARAMS } from "./protocol.ts";
import { isObject } from "../core/kit/json.ts";
import type { Args } from "./args.ts";
import { readArguments } from "./client/arguments.ts";
import { type PrintableContent, saveContents, toPrintableBlock } from "./client/content_blocks.ts";
import { type InteractiveSession, withInteractiveSession } from "./client/interactive_session.ts";
import { printNames } from "./client/listing_text.ts";
import { findByName } from "./client/name_lookup.ts";
import { ELICITATION_DESCRIPTION, INTERACTIVE_OPTIONS, SERVER_DESCRIPTION } from "./client/server_options.ts";
import { createStyle, writeJson, writeLine, writeText } from "./client/terminal_output.ts";
import { toLine } from "./client/terminal_text.ts";
import type { Command } from "./command.ts";
import { CliError, ServerError } from "./cli_error.ts";

export const prompt: Command = {
  name: "prompt",
  summary: "Print the messages of a server's prompt, or list the server's prompts",
  usage: [
    "prompt [OPTIONS] SERVER [PROMPT] [NAME=TEXT]...",
    'prompt [OPTIONS] SERVER PROMPT \'{"NAME": "TEXT"}\'',
    "prompt [OPTIONS] [PROMPT] [NAME=TEXT]... -- COMMAND...",
  ],
  description: [
    SERVER_DESCRIPTION,
    "The arguments of a prompt are text. NAME@=FILE reads the text from a file.",
    ELICITATION_DESCRIPTION,
  ],
  options: INTERACTIVE_OPTIONS,
  operands: "files",
  examples: [
    "prompt http://127.0.0.1:3000/mcp",
    "prompt mcp.jsonc review text@=draft.md",
    "prompt server.ts plan day=Monday --json",
  ],
  exitCodes: { 1: "The server responded with an error", 130: "Stopped with Ctrl-C" },
  run: (args) => withInteractiveSession(args, "prompt", (session) => getPrompt(session, args)),
};

interface PrintableMessage {
  readonly role: string;
  readonly content: PrintableContent;
}

async function getPrompt({ client, operands, request }: InteractiveSession, { flags }: Args): Promise<number> {
  const [name, ...words] = operands;
  const prompts = await request((options) => client.listPrompts(options));
  if (name === undefined) {
    await ("json" in flags ? writeJson(prompts) : printNames(prompts, "prompts"));
    return 0;
  }
  const found = findByName(prompts, name, { verb: "get", kind: "prompt" });
  const args = await readArguments(words, { action: `get ${toLine(name)}`, schema: toSchema(found) });
  const result = await request((options) => client.getPrompt(name, toTexts(args), options)).catch((error) =>
    explain(error, name)
  );
  const messages = result.messages.map(({ role, content }) => ({ role, content: toPrintableBlock(content) }));
  await ("json" in flags ? writeJson(result) : printMessages(messages));
  if ("output" in flags) await saveContents(messages.map(({ content }) => content), flags.output);
  return 0;
}

/** Converts an error about invalid arguments to an error that names the prompt. */
function explain(error: unknown, name: string): never {
  if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) throw error;
  const state = `the server rejected the request: ${toLine(error.message)} (${error.code})`;
  throw new ServerError(`Cannot get ${toLine(name)}: ${state}`);
}

async function printMessages(messages: readonly PrintableMessage[]): Promise<void> {
  const { bold } = createStyle("output");
  for (const [i, { role, content }] of messages.entries()) {
    await writeLine(`${i ? "\n" : ""}${bold(`${toLine(role, 20)}:`)}`);
    await writeText(content.text);
  }
}

/** Converts a prompt's list of arguments to a JSON Schema, because `readArguments` requires a schema. */
function toSchema({ arguments: listed }: ListedPrompt): Params {
  const args = (Array.isArray(listed) ? listed : []).filter(isObject);
  return {
    properties: Object.fromEntries(args.map(({ name }) => [String(name), { type: "string" }])),
    required: args.filter(({ required }) => required === true).map(({ name }) => name),
    additionalProperties: false,
  };
}

function toTexts(args: Params): Record<string, string> {
  const other = Object.entries(args).find(([, value]) => typeof value !== "string");
  if (other) {
    throw new CliError(
      `Cannot send ${other[0]}: arguments of prompts must be strings; put the value in quotation marks`,
    );
  }
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, String(value)]));
}
