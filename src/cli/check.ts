/**
 * `mcp check`: reports names, descriptions and schemas of a server that cause problems for clients or models.
 */
import { toState } from "../core/kit/error_state.ts";
import type { ListedTool, Served } from "../client/client.ts";
import { type HandlerSteps, listHeaderParams, listSteps, listWarnings } from "../host.ts";
import { toPrintable, toPrintableJson, toPrintableLine } from "../core/kit/printable.ts";
import { type Args, rejectRest, rejectSecond } from "./args.ts";
import type { Handler } from "../library.ts";
import type { Api, ServedOperation } from "../ready/openapi/openapi.ts";
import type { Command } from "./command.ts";
import { demo } from "./demo.ts";
import { type Directory, FOR, listQuestions, readDirectories, toQuestionList } from "./directories.ts";
import { LOCK_OPTIONS } from "./client/server_options.ts";
import { chooseEndpoint, chooseEndpoints, ENDPOINT_OPTIONS, enterEndpoint, readParams } from "./endpoint_options.ts";
import { formatCounts, listAll, type ListResult, toCount } from "./listing.ts";
import { type Finding, toSentence } from "./finding.ts";
import { checkListing, type Listing, toFindingLines, toTokens } from "./listing_check.ts";
import { importModule } from "./lazy_modules.ts";
import { findTarget, load, toKind } from "./load.ts";
import { toFolder } from "../ready/files/path.ts";
import { platform } from "./platform.ts";
import { CliError, UsageError, withAction } from "./cli_error.ts";

export const check: Command = {
  name: "check",
  summary: "Check a server's names, descriptions and schemas, and estimate its token cost",
  usage: ["check [OPTIONS] [TARGET]", "check --locked [OPTIONS] [NAME=]TARGET..."],
  description: [
    "TARGET is a file that exports a server, a config file or a folder. Defaults to ./mcp.jsonc, else ./server.ts, " +
    "else a demonstration server. The command estimates how many tokens the tools add to the context of a model.",
    "With --for, the command also checks what the directories of Claude and ChatGPT ask of a server, and prints the " +
    "questions that only you can answer. An error is what a directory refuses.",
    "With --locked, the command compares servers with the lock file, and takes the same targets as mcp lock.",
  ],
  options: {
    "max-tokens": {
      value: "NUMBER",
      text: "Report an error if the tools take more than this number of tokens (default: 20000)",
    },
    strict: { text: "Exit with code 1 for warnings too" },
    verbose: {
      text:
        "List the layers and middleware around each handler, in the order in which they run, and the operations of " +
        "OpenAPI documents that are left out",
    },
    for: FOR,
    json: { text: "Print one JSON document" },
    locked: { text: "Compare with the lock file" },
    ...LOCK_OPTIONS,
    "write-schema": { text: "Write mcp.schema.json next to a config file, for completion in editors" },
  },
  operands: "files",
  examples: ["check", "check server.ts --max-tokens 5000", "check server.ts --for claude,chatgpt"],
  exitCodes: { 1: "The check found errors or changes or, with --strict, warnings" },
  run: checkTarget,
};

async function checkTarget(args: Args): Promise<number> {
  const { operands, flags } = args;
  const isLocked = "locked" in flags;
  const names = Object.keys(flags).filter((name) => name !== "locked" && !(name in ENDPOINT_OPTIONS));
  const other = names.find((name) => name in LOCK_OPTIONS !== isLocked);
  const state = `it has no effect ${isLocked ? "with" : "without"} --locked`;
  if (other !== undefined) throw new UsageError(`Cannot use --${other}: ${state}; remove it`);
  if (isLocked) {
    return await (await importModule<typeof import("./lock.ts")>("./lock.ts")).compareAll(args, { verb: "check" });
  }
  const [named] = operands;
  rejectSecond(operands, { verb: "check", limit: "check takes one target" });
  rejectRest(args, "check");
  const maxTokens = flags["max-tokens"] ?? "20000";
  if (!/^\d+$/.test(maxTokens)) {
    throw new UsageError(
      `Cannot use --max-tokens ${maxTokens}: it is not a whole number; write a number, such as 20000`,
    );
  }
  const directories = readDirectories(args.all.for);
  const target = named ?? await findTarget();
  if ("write-schema" in flags) await writeSchema(target);
  const { server } = target === undefined ? { server: demo() } : await load(target);
  const name = target ?? "demonstration";
  const choice = { target: name, verb: "check" };
  const limits = { maxTokens: Number(maxTokens), isTrusted: true, directories };
  const endpoints = "json" in flags
    ? [chooseEndpoint(server, flags.server, choice)]
    : chooseEndpoints(server, flags.server, choice);
  let hasFailed = false;
  try {
    const params = readParams(args);
    for (const each of endpoints) {
      const takesParams = endpoints.length === 1 || each.params.length;
      const entered = await enterEndpoint(each, takesParams ? params : undefined, choice);
      // A handler whose warning is listed does not stop the server with an error.
      const warned = listWarnings(each.server).map((warning) => ({ level: "warning" as const, ...warning }));
      const { listing, failures } = await listWhole(entered, name);
      const findings = [...failures, ...checkListing(listing, limits), ...warned];
      const title = endpoints.length > 1 ? `${name}, server ${each.name}` : name;
      const steps = "verbose" in flags ? listSteps(each.server) : undefined;
      const leftOut = steps && listLeftOut(each.server.handlers.list());
      console.log(
        "json" in flags
          ? toJson(listing, findings, { steps, leftOut, directories })
          : toReport(title, listing, findings, directories),
      );
      if (steps && !("json" in flags)) console.log(`\n${toStepList(steps)}`);
      if (leftOut?.length && !("json" in flags)) console.log(`\n${toLeftOutList(leftOut)}`);
      hasFailed ||= findings.some(({ level }) => level === "error" || "strict" in flags);
    }
    if (!("json" in flags) && directories.length) console.log(toQuestionList(directories));
  } finally {
    await server.close();
  }
  return hasFailed ? 1 : 0;
}

/** Returns all lists of a server. If the server has a search, `tools` are all tools, and `shortTools` are listed first. */
async function listWhole(server: Served, target: string): Promise<ListResult> {
  const short = await listServer(server, target);
  const whole = await platform.withVariable("MCP_SEARCH", "off", () => listServer(server, target));
  const toNames = ({ listing }: ListResult) => JSON.stringify(listing.tools.map(({ name }) => name));
  if (!whole || toNames(short) === toNames(whole)) return short;
  return { ...whole, listing: { ...whole.listing, shortTools: short.listing.tools } };
}

async function listServer(server: Served, target: string): Promise<ListResult> {
  const { connect } = await import("../client/client.ts");
  // Fails if a value that the server needs to serve is not set, such as its secret.
  const client = await withAction(`Cannot check ${target}`, () => connect(server));
  try {
    return await listAll(client);
  } finally {
    await client.close();
  }
}

/**
 * Writes the JSON Schema of config files to a file in the folder of the target.
 *
 * @throws {CliError} if the target is not a config file, or the schema cannot be written.
 */
async function writeSchema(target: string | undefined): Promise<void> {
  if (target === undefined || await toKind(target) !== "config") {
    throw new UsageError(
      `Cannot write a schema for ${target ?? "the demonstration"}: it is not a config file; name a config file`,
    );
  }
  const file = `${toFolder(platform.toPath(target))}/${SCHEMA_FILE}`;
  const { toJsonSchema } = await importModule<typeof import("./config/schema.ts")>("./config/schema.ts");
  try {
    await platform.files.write(file, `${JSON.stringify(toJsonSchema(), null, 2)}\n`);
  } catch (error) {
    throw new CliError(`Cannot write ${file}: ${toState(error)}; check the folder`);
  }
  console.error(toPrintable(`Wrote ${file}. Refer to it with "$schema": "./${SCHEMA_FILE}".`));
}

const SCHEMA_FILE = "mcp.schema.json";

function toReport(
  target: string,
  listing: Listing,
  findings: readonly Finding[],
  directories: readonly Directory[],
): string {
  const tools = listing.shortTools ?? listing.tools;
  const tokens = tools.map(toTokens);
  const names = tools.map(({ name }) => toPrintableLine(name));
  const width = Math.max(0, ...names.map(({ length }) => length));
  const lines = names.map((name, i) =>
    `  ${name.padEnd(width)}  about ${toCount(tokens[i], "token")}${formatHeaders(tools[i])}`
  );
  const total = tokens.reduce((sum, each) => sum + each, 0);
  const found = toFindingLines(findings, directories).map(toPrintableLine);
  return [
    `${target}: ${formatCounts(listing)}`,
    ...tools.length ? [`The tools take about ${toCount(total, "token")} of a model's context:`, ...lines] : [],
    ...listing.shortTools ? ["A search finds the other tools. They take no tokens before they are found."] : [],
    ...found.length ? ["", ...found] : [
      `No problems.${directories.length ? " mcp doctor URL --for also examines the URL and the sign-in." : ""}`,
    ],
  ].join("\n");
}

/** Lists the steps of each handler, in the order in which they run. */
function toStepList(all: readonly HandlerSteps[]): string {
  const width = Math.max(0, ...all.flatMap(({ steps }) => steps.map(({ step }) => step.length)));
  const lines = all.flatMap(({ place, steps }) => [
    `  ${toPrintableLine(place)}${steps.length ? "" : ": none"}`,
    ...steps.map(({ step, layer }) => `    ${step.padEnd(width)}  ${toPrintableLine(layer)}`),
  ]);
  return ["Layers and middleware, in the order in which they run:", ...lines].join("\n");
}

/** An operation of an OpenAPI document that cannot be called. */
type LeftOut = Pick<ServedOperation, "id" | "reason">;

/** Lists the operations that `openapi()` has left out, also of APIs in groups. */
function listLeftOut(all: readonly Handler[]): readonly LeftOut[] {
  return all.flatMap((handler): readonly LeftOut[] => {
    const { operations, handlers = [] }: Partial<Api> = handler;
    if (!operations) return listLeftOut(handlers);
    return operations.flatMap(({ id, reason }) => reason === undefined ? [] : { id, reason });
  });
}

function toLeftOutList(leftOut: readonly LeftOut[]): string {
  const width = Math.max(...leftOut.map(({ id }) => id.length));
  const lines = leftOut.map(({ id, reason }) => `  ${toPrintableLine(`${id.padEnd(width)}  ${reason}`)}`);
  return ["Operations of OpenAPI documents that are left out:", ...lines].join("\n");
}

/** Lists the arguments of a tool that clients also send as headers, so that proxies can read the arguments. */
function formatHeaders({ inputSchema }: ListedTool): string {
  const headers = listHeaderParams(inputSchema);
  return headers.length
    ? `; ${headers.map(({ header, path }) => toPrintableLine(`${path.join(".")} in Mcp-Param-${header}`)).join(", ")}`
    : "";
}

interface VerboseParts {
  readonly steps?: readonly HandlerSteps[];
  readonly leftOut?: readonly LeftOut[];
  readonly directories: readonly Directory[];
}

function toJson(listing: Listing, findings: readonly Finding[], { directories, ...verbose }: VerboseParts): string {
  const tools = (listing.shortTools ?? listing.tools).map((tool) => ({
    name: tool.name,
    tokens: toTokens(tool),
    headers: listHeaderParams(tool.inputSchema).map(({ header }) => header),
  }));
  const tokens = tools.reduce((sum, { tokens }) => sum + tokens, 0);
  const { resources, templates, prompts } = listing;
  const counts = { resources: resources.length, templates: templates.length, prompts: prompts.length };
  const found = findings.map((each) => ({
    level: each.level,
    place: each.place,
    ...each.rule === undefined ? {} : { rule: each.rule },
    state: toSentence(each),
  }));
  const questions = directories.length ? { questions: listQuestions(directories) } : {};
  return toPrintableJson(
    JSON.stringify({ tools, tokens, ...counts, findings: found, ...questions, ...verbose }, null, 2),
  );
}
