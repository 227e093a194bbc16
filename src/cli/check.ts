/**
 * `mcp check [target]`: looks for what clients and models would stumble over.
 *
 * @module
 */
import type { ListedTool } from "../client/listed.ts";
import { toPrintableJson, toPrintableLine } from "../protocol/printable.ts";
import type { Args } from "./args.ts";
import type { Command } from "./command.ts";
import { demo } from "./demo.ts";
import { type Finding, findMistakes, listHeaders, type Listing, toTokens } from "./listing_check.ts";
import { listAll, toCount } from "./listing.ts";
import { findTarget, load } from "./load.ts";
import { UsageProblem } from "./problem.ts";

/** Checks a server. */
export const check: Command = {
  name: "check",
  summary: "Check the names, descriptions and schemas of a server, and what its tools cost a model",
  usage: `check [target] [--max-tokens N] [--strict] [--json]

Without a target it takes what \`serve\` would take.

--max-tokens N  how many tokens the list of tools may cost; 20000 if nothing is said
--strict        take warnings for errors
--json          print JSON

For example:
  check
  check server.ts --max-tokens 5000`,
  fails: "if there are errors",
  flags: { "max-tokens": true, strict: false, json: false },
  offers: { operands: "files" },
  run: checkTarget,
};

async function checkTarget({ operands, flags }: Args): Promise<number> {
  const [named, extra] = operands;
  if (extra !== undefined) throw new UsageProblem(`Cannot check ${extra} beside ${named}: name one target`);
  const most = flags["max-tokens"] ?? "20000";
  if (!/^\d+$/.test(most)) throw new UsageProblem(`Cannot allow ${most} tokens: write --max-tokens with a number`);
  const target = named ?? await findTarget();
  const { server, warnings = [] } = target === undefined ? { server: demo() } : await load(target);
  const { connect } = await import("../client/connect.ts");
  const client = await connect(server);
  const { listing, failures } = await listAll(client);
  await client.close();
  await server.close();
  const told: readonly Finding[] = warnings.map((warning) => ({ level: "warning", ...warning }));
  const findings = [...failures, ...told, ...findMistakes(listing, { most: Number(most), isTrusted: true })];
  console.log("json" in flags ? toJson(listing, findings) : toReport(target ?? "demonstration", listing, findings));
  return findings.some(({ level }) => level === "error" || "strict" in flags) ? 1 : 0;
}

function toReport(target: string, listing: Listing, findings: readonly Finding[]): string {
  const { tools, resources, templates, prompts } = listing;
  const counts = [
    toCount(tools.length, "tool"),
    toCount(resources.length, "resource"),
    toCount(templates.length, "template"),
    toCount(prompts.length, "prompt"),
  ];
  const tokens = tools.map(toTokens);
  const names = tools.map(({ name }) => toPrintableLine(name));
  const width = Math.max(0, ...names.map(({ length }) => length));
  const lines = names.map((name, i) =>
    `  ${name.padEnd(width)}  about ${toCount(tokens[i], "token")}${tellHeaders(tools[i])}`
  );
  const total = tokens.reduce((sum, each) => sum + each, 0);
  const found = findings.map(({ level, place, state }) => toPrintableLine(`${level}: ${place}: ${state}`));
  return [
    `${target}: ${counts.join(", ")}`,
    ...tools.length ? [`The tools take about ${toCount(total, "token")} of a model's context:`, ...lines] : [],
    ...found.length ? ["", ...found] : ["No problems."],
  ].join("\n");
}

/** The arguments that clients repeat in headers, where others on the way can see them. */
function tellHeaders({ inputSchema }: ListedTool): string {
  const headers = listHeaders(inputSchema);
  return headers.length
    ? `; ${headers.map(({ header, path }) => toPrintableLine(`${path.join(".")} in Mcp-Param-${header}`)).join(", ")}`
    : "";
}

function toJson(listing: Listing, findings: readonly Finding[]): string {
  const tools = listing.tools.map((tool) => ({
    name: tool.name,
    tokens: toTokens(tool),
    headers: listHeaders(tool.inputSchema).map(({ header }) => header),
  }));
  const tokens = tools.reduce((sum, { tokens }) => sum + tokens, 0);
  const { resources, templates, prompts } = listing;
  const json = JSON.stringify(
    { tools, tokens, resources: resources.length, templates: templates.length, prompts: prompts.length, findings },
    null,
    2,
  );
  return toPrintableJson(json);
}
