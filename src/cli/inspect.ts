/**
 * `mcp inspect server`: shows who a server is and what it has.
 *
 * @module
 */
import type { ServerFacts } from "../client/protocol.ts";
import { isObject } from "../protocol/jsonrpc.ts";
import type { Args } from "./args.ts";
import { showListing, type ShowOptions } from "./client/listing_text.ts";
import { toLine, toLines, toPlain } from "./client/terminal_text.ts";
import { screenWidth, styleOf, tellLine, writeJson, writeLine } from "./client/screen.ts";
import { SERVER_FLAGS, SERVER_OFFERS, SERVER_USAGE, type Session, withServer } from "./client/session.ts";
import { toTable } from "./client/table.ts";
import type { Command } from "./command.ts";
import { listAll } from "./listing.ts";
import { importPart } from "./parts.ts";
import { UsageProblem } from "./problem.ts";

/** Shows a server. */
export const inspect: Command = {
  name: "inspect",
  summary: "Show who a server is, what it speaks, and its tools, resources and prompts",
  usage: `inspect [server] [--header N=V …] [--timeout S] [--revision R] [--json | --page [--port N]]
inspect [flags] -- command …

${SERVER_USAGE}

--page        open a page for a URL or a command, in which you try it in a browser, in place of printing
--port N      the port of the page; any free one if not given

Without a server ./mcp.jsonc is shown, or else ./server.ts, or else the demonstration.

For example:
  inspect http://127.0.0.1:3000/mcp
  inspect server.ts --json
  inspect https://mcp.example.com/mcp --page
  inspect --revision 2025-06-18 -- npx -y some-server --verbose`,
  flags: { ...SERVER_FLAGS, page: false, port: true },
  offers: SERVER_OFFERS,
  fails: "if a list cannot be had, or the server answers with an error",
  run: async (args) =>
    "page" in args.flags
      ? await (await importPart("./inspector/serve.ts")).servePage(args)
      : await withServer(args, { verb: "inspect", isOptional: true }, (session) => showServer(session, args)),
};

async function showServer({ client, operands, signal }: Session, { flags }: Args): Promise<number> {
  if (operands.length) {
    throw new UsageProblem(`Cannot inspect ${operands[0]} too: name one server, or a command after --`);
  }
  const { listing, failures } = await listAll(client, { signal });
  const { server } = client;
  if ("json" in flags) {
    const { info, version, capabilities, instructions } = server;
    const whole = { server: info, revision: version, capabilities, instructions, ...listing };
    await writeJson(failures.length ? { ...whole, failures } : whole);
  } else {
    const options = { width: screenWidth(), style: styleOf("output") };
    await writeLine([...showFacts(server, options), ...showListing(listing, options)].join("\n"));
  }
  for (const { place, state } of failures) tellLine(`${place}: ${toLine(state)}`);
  return failures.length ? 1 : 0;
}

function showFacts({ era, version, info, capabilities, instructions }: ServerFacts, options: ShowOptions): string[] {
  const { style, width } = options;
  const name = info
    ? `${style.bold(toLine(info.name))} ${toLine(info.version)}`
    : style.bold("A server without a name");
  const texts = [info?.title, info?.description, info?.websiteUrl].filter((text) => typeof text === "string");
  const features = Object.entries(capabilities).filter(([, settings]) => settings).map(showCapability).sort();
  const rows = [
    ["revision", era === "modern" ? version : `${version} (with a handshake)`],
    ["capabilities", features.join(", ") || "none"],
    ...instructions ? [["instructions", toPlain(instructions.slice(0, 20_000)).trim()]] : [],
  ];
  return [
    name,
    ...texts.flatMap((text) => toLines(toPlain(String(text).slice(0, 4000)), width - 2).map((line) => `  ${line}`)),
    "",
    ...toTable(rows, { indent: 2, width, styles: [style.dim] }),
  ];
}

function showCapability([name, settings]: readonly [string, unknown]): string {
  const parts = Object.entries(isObject(settings) ? settings : {}).filter(([, value]) => value);
  const shown = parts.slice(0, 20).map(([part]) => toLine(part, 60)).join(", ");
  return toLine(name, 60) + (shown && ` (${shown})`);
}
