/**
 * `mcp prompt server name …`: fills in a prompt.
 *
 * @module
 */
import type { ListedPrompt } from "../client/listed.ts";
import { isObject, type Params } from "../protocol/jsonrpc.ts";
import type { Args } from "./args.ts";
import { readArguments } from "./client/arguments.ts";
import { savePieces, toPiece } from "./client/content_blocks.ts";
import {
  ASKING_FLAGS,
  ASKING_OFFERS,
  ASKING_USAGE,
  type Conversation,
  withConversation,
} from "./client/interactive_session.ts";
import { showNames } from "./client/listing_text.ts";
import { toLine } from "./client/terminal_text.ts";
import { styleOf, writeJson, writeLine, writeText } from "./client/terminal_output.ts";
import { findNamed } from "./client/name_lookup.ts";
import type { Command } from "./command.ts";
import { Problem } from "./problem.ts";

/** Lists the prompts of a server, or fills one in. */
export const prompt: Command = {
  name: "prompt",
  summary: "List the prompts of a server, or print the messages of one",
  usage: `prompt server [name] [argument=value … | '{"argument": "value"}'] [flags]
prompt [flags] [name] [argument=value …] -- command …

The arguments of prompts are texts; argument@=FILE takes one from a file.

${ASKING_USAGE}

For example:
  prompt http://127.0.0.1:3000/mcp
  prompt mcp.jsonc review text@=draft.md
  prompt server.ts plan day=Monday --json`,
  flags: ASKING_FLAGS,
  offers: ASKING_OFFERS,
  fails: "if the server answers with an error",
  run: (args) => withConversation(args, "prompt", (conversation) => getPrompt(conversation, args)),
};

async function getPrompt({ client, operands, ask }: Conversation, { flags }: Args): Promise<number> {
  const [name, ...words] = operands;
  const prompts = await ask((options) => client.listPrompts(options));
  if (name === undefined) {
    await ("json" in flags ? writeJson(prompts) : showNames(prompts));
    return 0;
  }
  const found = findNamed(prompts, name, { verb: "get", kind: "prompt" });
  const args = await readArguments(words, { what: `get ${toLine(name)}`, schema: toSchema(found) });
  const result = await ask((options) => client.getPrompt(name, toTexts(args), options));
  const messages = result.messages.map(({ role, content }) => ({ role, piece: toPiece(content) }));
  if ("json" in flags) await writeJson(result);
  else {
    const { bold } = styleOf("output");
    const texts = messages.map(({ role, piece }) => [bold(`${toLine(role, 20)}:`), piece.text]);
    for (const [i, [role, text]] of texts.entries()) {
      await writeLine(i ? `\n${role}` : role);
      await writeText(text);
    }
  }
  if ("output" in flags) await savePieces(messages.map(({ piece }) => piece), flags.output);
  return 0;
}

/** The arguments as a schema says it of a tool's. */
function toSchema({ arguments: listed }: ListedPrompt): Params {
  const args = (Array.isArray(listed) ? listed : []).filter(isObject);
  return {
    properties: Object.fromEntries(args.map(({ name }) => [String(name), { type: "string" }])),
    required: args.filter(({ required }) => required === true).map(({ name }) => name),
    additionalProperties: false,
  };
}

function toTexts(args: Params): Record<string, string> {
  const odd = Object.entries(args).find(([, value]) => typeof value !== "string");
  if (odd) throw new Problem(`Cannot send ${odd[0]}: the arguments of prompts are texts; put it in quotes`);
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, String(value)]));
}
