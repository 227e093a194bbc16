/**
 * `mcp read server uri`: reads a resource.
 *
 * @module
 */
import { RpcError } from "../client/rpc_error.ts";
import type { Args } from "./args.ts";
import { type Piece, savePieces, toContent } from "./client/blocks.ts";
import {
  ASKING_FLAGS,
  ASKING_OFFERS,
  ASKING_USAGE,
  type Conversation,
  withConversation,
} from "./client/conversation.ts";
import { showNames } from "./client/listing_text.ts";
import { toLine } from "./client/terminal_text.ts";
import { writeBytes, writeJson, writeText } from "./client/screen.ts";
import { suggest } from "./client/suggest.ts";
import type { Command } from "./command.ts";
import { platform } from "./platform.ts";
import { Problem, ServerProblem, UsageProblem } from "./problem.ts";

/** Lists the resources of a server, or reads one. */
export const read: Command = {
  name: "read",
  summary: "List the resources of a server, or print what one holds",
  usage: `read server [uri] [flags]
read [flags] [uri] -- command …

Text and bytes come as they are; bytes are not written to a terminal.

${ASKING_USAGE}

For example:
  read http://127.0.0.1:3000/mcp
  read docs file:///guide.md
  read server.ts chart://rain --output rain.png`,
  flags: ASKING_FLAGS,
  offers: ASKING_OFFERS,
  fails: "if the server answers with an error",
  run: (args) => withConversation(args, "read", (conversation) => readResource(conversation, args)),
};

async function readResource({ client, operands, ask }: Conversation, { flags }: Args): Promise<number> {
  const [uri, extra] = operands;
  if (extra !== undefined) throw new UsageProblem(`Cannot read ${extra} beside ${uri}: name one resource`);
  const list = async () => {
    const resources = await ask((options) => client.listResources(options));
    const templates = await ask((options) => client.listResourceTemplates(options));
    return { resources, templates };
  };
  if (uri === undefined) {
    const { resources, templates } = await list();
    const items = [...resources, ...templates].map(({ name, title = name, description = title, uri, uriTemplate }) => ({
      name: toLine(uri ?? uriTemplate, 2000),
      description,
    }));
    await ("json" in flags ? writeJson({ resources, templates }) : showNames(items));
    return 0;
  }
  const result = await ask((options) => client.readResource(uri, options)).catch(async (error) => {
    if (!(error instanceof RpcError) || error.status === 401) throw error;
    const { resources } = await list().catch(() => ({ resources: [] }));
    const names = resources.map((each) => each.uri);
    if (names.includes(uri) || !names.length) throw error;
    const said = `${toLine(error.message)} (${error.code})`;
    throw new ServerProblem(`Cannot read ${toLine(uri)}: ${said}; ${suggest(uri, names)}`);
  });
  const pieces = result.contents.map((each) => toContent({ ...each }));
  if ("json" in flags) await writeJson(result);
  if ("output" in flags) await savePieces(pieces, flags.output);
  else if (!("json" in flags)) { for (const piece of pieces) await print(piece); }
  return 0;
}

async function print({ text, bytes }: Piece): Promise<void> {
  const isTerminal = platform.terminal.isAt("output");
  if (!bytes) await (isTerminal ? writeText(text) : writeBytes(new TextEncoder().encode(text)));
  else if (!isTerminal) await writeBytes(bytes);
  else throw new Problem(`Cannot print ${text}: it is not text; write it to a file with --output FILE`);
}
