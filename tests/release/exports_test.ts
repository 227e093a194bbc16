// Tests which names the package exports: few from the main entry, and each type from one entry.
import { assert, assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };

const root = new URL("../../", import.meta.url);
const ignore = typeof Deno === "undefined"; // Only Deno runs these tests, because `deno doc` lists the names.

const VALUES = [
  "withJsonSchema",
  ...["createServer", "tool", "resource", "resourceProvider", "prompt", "media", "resourceLink", "service", "group"],
  ...["mount", "extension", "onlyMethods", "isQuestion", "McpError", "ToolError"],
  ...["toolProvider", "promptProvider", "transform"],
];
const MOST_TYPES = 99;
/**
 * Maximum number of exported names in all earlier entries. Raise it only if a new feature needs another name in such an
 * entry, as testTask, replayTranscript, authScheme, toolProvider, transform, lock and fakeGitHub did, or if two entries use one name for two things, as
 * Completion, Subscription and ConnectOptions did.
 */
const MOST_NAMES = 364;
/** Entries that were added later, each with the number of its names. */
const LATER: Readonly<Record<string, number>> = {
  "./search": 3,
  "./code": 7,
  "./web": 6,
  "./openapi": 13,
  "./apps": 7,
  "./apps/page": 7,
  "./client/oauth": 25,
  "./client/skills": 7,
  "./client/tasks": 9,
  "./handlers": 15,
  "./layers": 45,
  "./oauth/proxy": 28,
  "./observe": 39,
  "./serve": 3,
  "./observe/opentelemetry": 4,
  "./skills": 2,
  "./tasks": 8,
  "./stores/redis": 3,
  "./stores/postgres": 3,
  "./stores/sqlite": 3,
  "./stores/deno-kv": 5,
};

interface Name {
  readonly name: string;
  readonly isType: boolean;
}

interface Documented {
  readonly jsDoc?: { readonly doc?: string };
}

interface Member extends Documented {
  readonly name: string;
  readonly optional?: boolean;
  readonly tsType?: { readonly repr: string };
}

interface Declaration extends Documented {
  readonly kind: string;
  readonly declarationKind: string;
  readonly def?: { readonly properties?: readonly Member[]; readonly methods?: readonly Member[] };
}

/** What `deno doc` prints for an entry. */
interface Entry {
  readonly module_doc?: { readonly doc?: string };
  readonly symbols: readonly { readonly name: string; readonly declarations: readonly Declaration[] }[];
}

async function readEntry(source: string): Promise<Entry> {
  const args = ["doc", "--json", source];
  const { stdout } = await new Deno.Command("deno", { args, cwd: root, stderr: "null" }).output();
  return Object.values<Entry>(JSON.parse(new TextDecoder().decode(stdout)).nodes)[0];
}

async function listNames(source: string): Promise<readonly Name[]> {
  const { symbols } = await readEntry(source);
  // A namespace contains only types.
  const isType = (kind: string) => ["interface", "typeAlias", "namespace"].includes(kind);
  return symbols.map(({ name, declarations }) => ({ name, isType: declarations.every(({ kind }) => isType(kind)) }));
}

/** Units at the end of a member's name, and the word that its documentation must then contain. */
const UNITS = [[/Ms$/, /milliseconds/i], [/[bB]ytes$/, /bytes/i]] as const;

/** Returns what is missing in the documentation of a member. */
function* findGaps(owner: string, { name, optional, tsType, jsDoc }: Member): Generator<string> {
  const text = jsDoc?.doc;
  if (!text) return yield `${owner}.${name} has no sentence`;
  if (tsType?.repr !== "number" && tsType?.repr !== "boolean") return;
  for (const [suffix, words] of UNITS) {
    if (suffix.test(name) && !words.test(text)) yield `${owner}.${name} has no unit`;
  }
  if (optional && owner.endsWith("Options") && !/default|without it|as in/i.test(text)) {
    yield `${owner}.${name} has no default`;
  }
}

Deno.test("the main entry exports few names, and no two entries export the same name", { ignore }, async () => {
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
  // Types of the protocol that the client and the test kit export in addition to their own types do not count.
  const apart = all.filter(([, entry]) => !/client|testing|socket|sse/.test(entry)).map(([name]) => name);
  assertEquals(apart.filter((name, at) => apart.indexOf(name) !== at), [], "a name is exported from two entries");
});

Deno.test("each entry has a page with an example, and every name has a sentence that states its unit and default", {
  ignore,
}, async () => {
  const gaps: string[] = [];
  for (const [entry, source] of Object.entries(config.exports)) {
    const { module_doc, symbols } = await readEntry(source);
    if (!/^```/m.test(module_doc?.doc ?? "")) gaps.push(`${entry} has no example`);
    for (const { name, declarations } of symbols) {
      const exported = declarations.filter(({ declarationKind }) => declarationKind === "export");
      // Only one of the overloads needs documentation, because `deno doc` does not print the implementation's
      // signature.
      if (!exported.some(({ jsDoc }) => jsDoc?.doc)) gaps.push(`${name} has no sentence`);
      for (const { def } of exported) {
        for (const member of [...def?.properties ?? [], ...def?.methods ?? []]) gaps.push(...findGaps(name, member));
      }
    }
  }
  assertEquals(gaps, []);
});
