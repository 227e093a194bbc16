/**
 * `mcp read`: lists the resources of a server, or reads a resource.
 */
import { McpError } from "../client/client.ts";
import type { Args } from "./args.ts";
import { type PrintableContent, saveContents, toPrintableResource } from "./client/content_blocks.ts";
import { type InteractiveSession, withInteractiveSession } from "./client/interactive_session.ts";
import { printNames } from "./client/listing_text.ts";
import { suggestName } from "./client/name_lookup.ts";
import { ELICITATION_DESCRIPTION, INTERACTIVE_OPTIONS, SERVER_DESCRIPTION } from "./client/server_options.ts";
import { writeBytes, writeJson, writeText } from "./client/terminal_output.ts";
import { toLine } from "./client/terminal_text.ts";
import type { Command } from "./command.ts";
import { platform } from "./platform.ts";
import { CliError, ServerError, UsageError } from "./cli_error.ts";

export const read: Command = {
  name: "read",
  summary: "Print a server's resource, or list the server's resources",
  usage: ["read [OPTIONS] SERVER [URI]", "read [OPTIONS] [URI] -- COMMAND..."],
  description: [
    "The command prints text and binary data unchanged, but does not print binary data to a terminal.",
    SERVER_DESCRIPTION,
    ELICITATION_DESCRIPTION,
  ],
  options: INTERACTIVE_OPTIONS,
  operands: "files",
  examples: [
    "read http://127.0.0.1:3000/mcp",
    "read docs file:///guide.md",
    "read server.ts chart://rain --output rain.png",
  ],
  exitCodes: { 1: "The server responded with an error", 130: "Stopped with Ctrl-C" },
  run: (args) => withInteractiveSession(args, "read", (session) => readResource(session, args)),
};

async function readResource(session: InteractiveSession, { flags }: Args): Promise<number> {
  const { client, operands: [uri, extra], request } = session;
  if (extra !== undefined) {
    throw new UsageError(
      `Cannot read ${extra} and ${uri}: read takes one URI; remove one of the two`,
    );
  }
  if (uri === undefined) return await printResources(session, "json" in flags);
  const result = await request((options) => client.readResource(uri, options)).catch((error) =>
    explain(error, uri, session)
  );
  const contents = result.contents.map((each) => toPrintableResource({ ...each }));
  if ("json" in flags) await writeJson(result);
  if ("output" in flags) await saveContents(contents, flags.output);
  else if (!("json" in flags)) { for (const content of contents) await print(content); }
  return 0;
}

async function printResources({ client, request }: InteractiveSession, isJson: boolean): Promise<number> {
  const resources = await request((options) => client.listResources(options));
  const templates = await request((options) => client.listResourceTemplates(options));
  const items = [...resources, ...templates].map(({ name, title = name, description = title, uri, uriTemplate }) => ({
    name: toLine(uri ?? uriTemplate, 2000),
    description,
  }));
  await (isJson ? writeJson({ resources, templates }) : printNames(items, "resources"));
  return 0;
}

/** Adds a suggestion to an error if the server lists resources, but no resource with this URI. */
async function explain(error: unknown, uri: string, { client, request }: InteractiveSession): Promise<never> {
  if (!(error instanceof McpError) || error.status === 401) throw error;
  const resources = await request((options) => client.listResources(options)).catch(() => []);
  const uris = resources.map((each) => each.uri);
  if (uris.includes(uri) || !uris.length) throw error;
  const state = `${toLine(error.message)} (${error.code})`;
  throw new ServerError(`Cannot read ${toLine(uri) || '""'}: ${state}; ${suggestName(uri, uris)}`);
}

async function print({ text, bytes }: PrintableContent): Promise<void> {
  const isTerminal = platform.terminal.isAt("output");
  if (!bytes) await (isTerminal ? writeText(text) : writeBytes(new TextEncoder().encode(text)));
  else if (!isTerminal) await writeBytes(bytes);
  else throw new CliError(`Cannot print ${text}: it is not text; write the data to a file with --output FILE`);
}
