// Writes the tables in docs/reference/clients.md: what the task clients has seen, from record.json, and what other
// sources say, from sourced.json.
import { toMarkdown, writeTables } from "../release/page_tables.ts";
import { type ClientRecord, readRecords, type Records } from "./record.ts";
import sourced from "./sourced.json" with { type: "json" };

/** The URL of the page's file. */
export const pageFile: URL = new URL("../../docs/reference/clients.md", import.meta.url);

/** A column: its heading, and its cell for a client. */
type Column = readonly [heading: string, toCell: (client: ClientRecord) => string];

/** Returns a column with a behaviour. A difference over stdio follows in brackets. */
function behaviour(heading: string, name: string): Column {
  return [heading, ({ behaviours, stdio }) => {
    const value = behaviours[name] ?? "?";
    return name in stdio ? `${value} (stdio: ${stdio[name]})` : value;
  }];
}

const title: Column = ["client", ({ title }) => title];
const version: Column = ["package", ({ package: name, version }) => `\`${name}\` ${version}`];
const date: Column = ["seen on", ({ date }) => date];
const revision = behaviour("revision", "revision");
const results: readonly Column[] = [
  behaviour("text and other structured content", "structured"),
  behaviour("structured content without text", "structuredOnly"),
  behaviour("image", "image"),
  behaviour("object with an image", "objectWithImage"),
  behaviour("`ToolError`", "error"),
  behaviour("link", "link"),
  behaviour("embedded text", "embedded"),
];
const questions: readonly Column[] = [
  behaviour("form", "form"),
  behaviour("URL", "url"),
  behaviour("sampling", "sampling"),
  behaviour("roots", "roots"),
];

const agentResults: readonly Column[] = [
  ...[title, version, date, revision],
  ...results,
  ...["20,000", "60,000"].map((size) => behaviour(`${size} characters`, `result of ${size} characters`)),
];
const agentLists: readonly Column[] = [
  title,
  ["name of `add`", ({ behaviours: { toolName } }) => `\`${toolName}\``],
  behaviour("definitions", "definitions"),
  behaviour("dot in a name", "dot"),
  behaviour("name of 90 letters", "longName"),
  behaviour("description of 6,000 characters", "description"),
  behaviour("`instructions`", "instructions"),
  behaviour("changed list", "listChanged"),
  behaviour("resources", "resources"),
  behaviour("asks for prompts", "prompts"),
];
const agentMessages: readonly Column[] = [
  ...[title, ...questions],
  behaviour("progress token", "progressToken"),
  behaviour("`MCP-Protocol-Version`", "versionHeader"),
  behaviour("ends its session", "endsSession"),
  behaviour("OAuth sign-in", "signIn"),
  ["`clientInfo.name`", ({ behaviours: { clientName } }) => `\`${clientName}\``],
];
const frameworkResults: readonly Column[] = [title, version, date, revision, ...results, ...questions.slice(0, 2)];

/** What a behaviour is called in the table of repairs. */
const REPAIRS: Readonly<Record<string, string>> = {
  number: "a text that is a number",
  objectWithImage: "an object with an image",
  url: "elicitation with a URL",
};

/** What a behaviour is called in the table of differences behind a gateway. */
const BEHIND_GATEWAY: Readonly<Record<string, string>> = {
  toolName: "name of `add`",
  longName: "name of 90 letters",
  instructions: "`instructions`",
};

/** Returns the tables of the page, in their order. */
export function toTables(records: Records): readonly string[] {
  const all = Object.values(records);
  const ofKind = (kind: ClientRecord["kind"]) => all.filter((client) => client.kind === kind);
  const repairs = all.flatMap(({ title, behaviours, official }) =>
    Object.entries(official).map(([name, value]) => [title, REPAIRS[name] ?? name, value, behaviours[name]])
  );
  const behindGateway = all.flatMap(({ title, behaviours, gateway = {} }) =>
    Object.entries(gateway).map(([name, value]) => [
      ...[title, BEHIND_GATEWAY[name] ?? name],
      ...[behaviours[name], value].map((each) => name === "toolName" ? `\`${each}\`` : each),
    ])
  );
  return [
    toTable(agentResults, ofKind("agent")),
    toTable(agentLists, ofKind("agent")),
    toTable(agentMessages, ofKind("agent")),
    toTable(frameworkResults, ofKind("framework")),
    toMarkdown(["client", "behavior", "with the official SDK", "with this library"], repairs),
    toMarkdown(["client", "behavior", "direct connection", "behind `mcp gateway`"], behindGateway),
    ...Object.values(sourced).map(({ columns, rows }) => toMarkdown(columns, rows)),
  ];
}

function toTable(columns: readonly Column[], clients: readonly ClientRecord[]): string {
  return toMarkdown(
    columns.map(([heading]) => heading),
    clients.map((client) => columns.map(([, toCell]) => toCell(client))),
  );
}

if (import.meta.main) await writeTables(pageFile, toTables(await readRecords()));
