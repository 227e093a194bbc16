// The names that the entries export: few in the main entry, each type in one entry.
import { assert, assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // `deno doc` lists the names

const VALUES = [
  ...["createServer", "tool", "resource", "resourceProvider", "prompt", "media", "resourceLink", "service", "group"],
  ...["mount", "extension", "onlyMethods", "isQuestion", "McpError", "ToolError"],
];
const MOST_TYPES = 100;
/** Names in all entries together. Raised only for what an earlier entry needs for a new feature: testTask, call.handler, replayTranscript. */
const MOST_NAMES = 374;
/** Entries that came later, with the number of their names. */
const LATER: Readonly<Record<string, number>> = {
  "./apps": 9,
  "./apps/page": 7,
  "./client/oauth": 22,
  "./client/skills": 7,
  "./client/tasks": 10,
  "./handlers": 16,
  "./observe": 18,
  "./serve": 3,
  "./observe/opentelemetry": 4,
  "./skills": 2,
  "./tasks": 8,
  "./stores/redis": 3,
  "./stores/sqlite": 3,
  "./stores/deno-kv": 5,
};

interface Name {
  readonly name: string;
  readonly isType: boolean;
}

async function listNames(source: string): Promise<readonly Name[]> {
  const args = ["doc", "--json", source];
  const { stdout } = await new Deno.Command("deno", { args, cwd: root, stderr: "null" }).output();
  const { nodes } = JSON.parse(new TextDecoder().decode(stdout));
  const [{ symbols }] = Object.values<{ symbols: { name: string; declarations: { kind: string }[] }[] }>(nodes);
  const isType = (kind: string) => kind === "interface" || kind === "typeAlias";
  return symbols.map(({ name, declarations }) => ({ name, isType: declarations.every(({ kind }) => isType(kind)) }));
}

Deno.test({
  name: "the main entry exports few names, and no entry exports the names of another",
  ignore,
  async fn() {
    const entries = new Map<string, readonly Name[]>();
    for (const [entry, source] of Object.entries(config.exports)) entries.set(entry, await listNames(source));
    const main = entries.get(".") ?? [];
    assertEquals(main.filter(({ isType }) => !isType).map(({ name }) => name).sort(), [...VALUES].sort());
    const types = main.filter(({ isType }) => isType);
    assert(types.length > 10 && types.length <= MOST_TYPES, `${types.length} types; at most ${MOST_TYPES}`);
    const all = [...entries].flatMap(([entry, names]) => names.map(({ name }) => [name, entry] as const));
    const unique = new Set(all.filter(([, entry]) => !Object.hasOwn(LATER, entry)).map(([name]) => name));
    for (const [entry, count] of Object.entries(LATER)) assertEquals(entries.get(entry)?.length, count, entry);
    assert(unique.size <= MOST_NAMES, `${unique.size} names; at most ${MOST_NAMES}`);
    // The client and the test kit have types of the protocol beside their own.
    const apart = all.filter(([, entry]) => !/client|testing|socket|sse/.test(entry)).map(([name]) => name);
    assertEquals(apart.filter((name, at) => apart.indexOf(name) !== at), [], "a name is in two entries");
  },
});
