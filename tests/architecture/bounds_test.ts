// Everything that grows with requests has a bound: it is charged to a pot, whose row is in tests/load/pots.ts, or the
// comment `// Bound: …` beside it names what limits it.
import { assert, assertEquals } from "@std/assert";
import { FIXED_LIMITS } from "../../src/server/capacity/fixed_limits.ts";
import { readLimits } from "../../src/server/capacity/limits.ts";
import { POTS } from "../load/pots.ts";
import { listSources } from "../support/sources.ts";
import { onDeno } from "../support/on_deno.ts";
import { listContainers } from "./long_lived.ts";

const root = new URL("../../", import.meta.url);

/** The folders with code that requests of clients run. */
const FOLDERS = ["auth", "core", "extensions", "layers", "observe", "proxy", "ready", "server", "stores"].map((each) =>
  `src/${each}/`
);

/** The files whose containers have ended when a call, a message or a step at the start has ended. */
const SHORT: { readonly [path: string]: string } = {
  "src/core/kit/bearer_challenge.ts": "one header",
  "src/core/kit/transcript.ts": "a transcript of a test",
  "src/core/protocol/wire.ts": "a check of one message",
  "src/core/schema/adapt_input.ts": "the arguments of one call",
  "src/core/schema/json_check.ts": "a schema that the author wrote",
  "src/core/schema/json_node.ts": "a schema that the author wrote",
  "src/extensions/apps/browser/bridge.ts": "a page in a browser",
  "src/layers/plain_values.ts": "a walk through one value",
  "src/ready/openapi/loops.ts": "a document that is read at the start",
  "src/ready/openapi/names.ts": "a document that is read at the start",
  "src/ready/openapi/schemas.ts": "a document that is read at the start",
  "src/ready/openapi/shape.ts": "a document that is read at the start",
  "src/ready/openapi/used_parts.ts": "a document that is read at the start",
  "src/ready/worker/expose.ts": "one call in a worker thread",
  "src/server/call/answers.ts": "one call",
  "src/server/call/asked_questions.ts": "one call",
  "src/server/call/call.ts": "one call",
  "src/server/call/inner_calls.ts": "one call, with `calls.inner`",
  "src/server/call/once.ts": "one call, with `calls.stateBytes`",
  "src/server/call/rerun_watch.ts": "one call during development",
  "src/server/eras/modern/input_requests.ts": "one call, with `calls.stateBytes`",
  "src/server/handlers/encoders.ts": "the encoding of one value",
  "src/server/handlers/guarded_run.ts": "one call",
  "src/server/handlers/guarded_questions.ts": "one call",
  "src/server/handlers/transform.ts": "a schema that the author wrote",
};

function listNames(limits: object, before = ""): readonly string[] {
  return Object.entries(limits).flatMap(([name, value]) =>
    typeof value === "object" && value ? listNames(value, `${before}${name}.`) : `${before}${name}`
  );
}

const LIMITS = new Set([...listNames(readLimits()), ...listNames(FIXED_LIMITS), ...Object.keys(POTS)]);

/** Lists the containers of a file that have no bound, and the bounds that name nothing. */
function listProblems(path: string, text: string): readonly string[] {
  const code = text.replace(/\/\/ Bound: .*/g, "");
  return listContainers(path, text).flatMap(({ name, line, bound }) => {
    const place = `${path}:${line} ${name}`;
    if (bound === undefined) return `${place} can grow, and has no comment "// Bound: …"`;
    // The number of clients has no bound.
    if (!bound.includes("`") && /\b(client|within)\b/.test(bound)) {
      return `${place} has a bound that grows with clients or with time`;
    }
    const unknown = [...bound.matchAll(/`([^`]+)`/g)].map(([, name]) => name).filter((name) =>
      !LIMITS.has(name) && !(/^\w+$/.test(name) && new RegExp(`\\b${name}\\b`).test(code))
    );
    return unknown.map((name) => `${place} has the bound ${name}, which does not exist`);
  });
}

// Deno lists the sources.
onDeno(
  "every map, set and list that grows with requests has a bound beside it, or is a row in the table of pots",
  async () => {
    const sources = (await listSources("src/")).filter((path) => FOLDERS.some((folder) => path.startsWith(folder)));
    const problems: string[] = [];
    const unused = new Set(Object.keys(SHORT));
    let count = 0;
    for (const path of sources) {
      const text = await Deno.readTextFile(new URL(path, root));
      count += listContainers(path, text).length;
      if (!SHORT[path]) problems.push(...listProblems(path, text));
      else if (listContainers(path, text).length) unused.delete(path);
    }
    assertEquals(problems, []);
    assertEquals([...unused], [], "files in SHORT without such a container");
    assert(count > 100, "the test did not find the containers");
  },
);

/** Code with a container that can grow. A comment can stand at `¶`. */
const GROWING: { readonly [name: string]: string } = {
  "a field": "class A { ¶ readonly #seen = new Map<string, number>(); add(id: string) { this.#seen.set(id, 1); } }",
  "a list in a field": "class A { ¶ all: string[] = []; add(id: string) { const { all } = this; all.push(id); } }",
  "an alias of a field": "class A { ¶ #a = new Set(); add(id: string) { const known = this.#a; known.add(id); } }",
  "a late field": "class A { ¶ #a?: Map<string, number>; add(id: string) { (this.#a ??= new Map()).set(id, 1); } }",
  "a variable of a module": "¶ const seen = new Set<string>(); export function add(id: string) { seen.add(id); }",
  "a variable of a factory":
    "export function make() { ¶ const seen = new Map(); return { add: (id: string) => seen.set(id, 1) }; }",
  "a method of a factory's object":
    "export function make() { ¶ const all: string[] = []; return { add(id: string) { if (id) all.push(id); } }; }",
  "a value of a server": "¶ export const open = (state: State) => state.slot(KEY, () => new Map());",
  "a member of an object": "¶ const of = () => ({ ids: new Set() }); export const add = (a: A) => a.ids.add(1);",
};

for (const [name, text] of Object.entries(GROWING)) {
  Deno.test(`the rule finds ${name} without a bound, and accepts it with one`, () => {
    const listWith = (comment: string) =>
      listProblems("a.ts", `const MAX = 5;\n${text.replace("¶", `\n${comment}\n`)}`);
    assertEquals(listWith("").length, 1);
    for (const bound of ["`calls.running`", "`MAX` per client", "one per handler"]) {
      assertEquals(listWith(`// Bound: ${bound}.`), [], bound);
    }
    for (
      const comment of ["// Bound: `calls.unheard`.", "// Bounded.", "// Bound: `MIN`.", "// Bound: one per client."]
    ) {
      assertEquals(listWith(comment).length, 1, comment);
    }
  });
}

Deno.test("the rule does not find what ends with a function call, what a constructor fills, and weak or bounded maps", () => {
  const texts = [
    "export function sum(all: string[]) { const seen = new Set(); for (const each of all) seen.add(each); return seen; }",
    "class A { readonly #a = new Map(); constructor(all: string[]) { for (const each of all) this.#a.set(each, 1); } }",
    "class A { #a = new WeakMap(); add(id: object) { this.#a.set(id, 1); } }",
    'class A { #a = new BoundedMap({ full: "evict", max: 5 }); add(id: string) { this.#a.set(id, 1); } }',
    "const OTHER = new Set(['a']); export const has = (id: string) => OTHER.has(id);",
    "export const make = () => ({ all(ids: string[]) { const out: string[] = []; for (const id of ids) out.push(id); return out; } });",
  ];
  for (const text of texts) assertEquals(listProblems("a.ts", text), [], text);
});
