/**
 * `mcp inspect`: shows the name, the protocol revision, the capabilities and the lists of a server.
 */
import type { ServerInfo } from "../client/client.ts";
import { isObject } from "../core/kit/json.ts";
import type { Args } from "./args.ts";
import { formatListing, type FormatOptions } from "./client/listing_text.ts";
import { SERVER_DESCRIPTION, SERVER_OPTIONS } from "./client/server_options.ts";
import { type ServerSession, withServerSession } from "./client/server_session.ts";
import { toLine, toLines, toPlain, toTable } from "./client/terminal_text.ts";
import { createStyle, reportLine, terminalWidth, writeJson, writeLine } from "./client/terminal_output.ts";
import type { Command } from "./command.ts";
import { importModule } from "./lazy_modules.ts";
import { listAll } from "./listing.ts";
import { UsageError } from "./cli_error.ts";

export const inspect: Command = {
  name: "inspect",
  summary: "Show a server's revision, capabilities, tools, resources and prompts",
  usage: ["inspect [OPTIONS] [SERVER]", "inspect [OPTIONS] -- COMMAND..."],
  description: [`${SERVER_DESCRIPTION} Defaults to ./mcp.jsonc, else ./server.ts, else a demonstration server.`],
  options: {
    ...SERVER_OPTIONS,
    page: { text: "Open the inspector, a web page for trying the server; requires a URL or a command" },
    port: { value: "PORT", text: "Port of the inspector page (default: any free port)" },
  },
  operands: "files",
  examples: [
    "inspect http://127.0.0.1:3000/mcp",
    "inspect server.ts --json",
    "inspect https://mcp.example.com/mcp --page",
    "inspect --revision 2025-06-18 -- npx -y some-server --verbose",
  ],
  exitCodes: { 1: "A list request failed, or the server responded with an error", 130: "Stopped with Ctrl-C" },
  run: inspectServer,
};

async function inspectServer(args: Args): Promise<number | void> {
  if ("page" in args.flags) {
    return await (await importModule<typeof import("./inspector/serve.ts")>("./inspector/serve.ts")).servePage(args);
  }
  if ("port" in args.flags) throw new UsageError("Cannot use --port: the port is for the inspector page; add --page");
  return await withServerSession(args, { verb: "inspect", isOptional: true }, (session) => showServer(session, args));
}

async function showServer({ client, operands, signal }: ServerSession, { flags }: Args): Promise<number> {
  if (operands.length) {
    throw new UsageError(`Cannot inspect ${operands[0]} too: inspect takes one server; remove ${operands[0]}`);
  }
  const { listing, failures } = await listAll(client, { signal });
  const { server } = client;
  if ("json" in flags) {
    const { info, version, capabilities, instructions } = server;
    const whole = { server: info, revision: version, capabilities, instructions, ...listing };
    await writeJson(failures.length ? { ...whole, failures } : whole);
  } else {
    const options = { width: terminalWidth(), style: createStyle("output") };
    await writeLine([...formatServer(server, options), ...formatListing(listing, options)].join("\n"));
  }
  for (const { place, state } of failures) reportLine(`${place}: ${toLine(state)}`);
  return failures.length ? 1 : 0;
}

function formatServer(
  { era, version, info, capabilities, instructions }: ServerInfo,
  { style, width }: FormatOptions,
): string[] {
  const name = info ? `${style.bold(toLine(info.name))} ${toLine(info.version)}` : style.bold("Unnamed server");
  const texts = [info?.title, info?.description, info?.websiteUrl].filter((text) => typeof text === "string");
  const features = Object.entries(capabilities).filter(([, settings]) => settings).map(formatCapability).sort();
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

function formatCapability([name, settings]: readonly [string, unknown]): string {
  const enabled = Object.entries(isObject(settings) ? settings : {}).filter(([, value]) => value);
  const shown = enabled.slice(0, 20).map(([setting]) => toLine(setting, 60)).join(", ");
  return toLine(name, 60) + (shown && ` (${shown})`);
}
