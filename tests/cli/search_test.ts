// Servers with a search, on the command line: config files, `mcp call` and `mcp check`.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runHere } from "./run_here.ts";

const config = {
  search: true,
  tools: {
    greet: {
      description: "Greets a person",
      run: ["echo", "hello", "{{name}}"],
      input: { properties: { name: { type: "string", enum: ["12", "ada"], description: "Name" } }, required: ["name"] },
    },
  },
};

const source = `import { createServer, tool } from "@x/mcp";
import { toolSearch } from "@x/mcp/search";
const annotations = { readOnlyHint: false };
const tools = Array.from({ length: 30 }, (_, at) =>
  tool({ name: "make_" + at, description: "Makes a thing. ".repeat(60) + "x".repeat(at === 7 ? 2000 : 500), run: () => at, annotations,
    input: { type: "object", required: at === 7 ? ["x"] : [] } }));
const others = [{ name: "long_".repeat(14) }, { name: "titled", title: "Titled" }];
const handlers = [SEARCH, others.map((each) => tool({ ...each, annotations, run: () => 1 })), tools].flat();
export default createServer({ name: "s", version: "1.0.0", handlers });`;

interface Report {
  readonly tools: readonly { readonly name: string }[];
  readonly tokens: number;
  readonly findings: readonly { readonly level: string; readonly place: string; readonly state: string }[];
}

/** Returns the last line. Deno prints lines before it when it loads packages for the first time. */
const toLast = (text: string) => text.trim().split("\n").at(-1) ?? "";

Deno.test("the command line calls and checks the tools of a server with a search", async () => {
  await withFiles({ "mcp.jsonc": config }, async (cwd) => {
    const call = (...words: readonly string[]) => runHere(["call", "mcp.jsonc", ...words], { cwd });
    assertEquals((await call()).stdout.match(/^\S+/gm), ["search_tools", "call_tool"]);
    // The schema of the tool says that 12 is text.
    assertEquals((await call("greet", "name=12")).stdout, "hello 12\n");
    assertEquals(toLast((await call("greet")).stderr), sentence("greet", "name"));
    const unknown = await call("nothing");
    assertEquals([unknown.code, toLast(unknown.stderr)], [2, sentence("nothing", "search_tools")]);
    assertEquals(toLast((await call("greet_x")).stderr), sentence("greet_x", "greet?"));
  });
  await withFiles({
    "many.js": source.replace("SEARCH", "[]"),
    "search.js": source.replace("SEARCH", "toolSearch()"),
  }, async (cwd) => {
    const many = await runHere(["check", "many.js"], { cwd });
    assertStringIncludes(many.stdout.replaceAll(/\d{3,}/g, "N"), sentence("toolSearch", "search: true"));
    const search = await runHere(["check", "search.js", "--json"], { cwd });
    const { tools, tokens, findings }: Report = JSON.parse(search.stdout);
    assertEquals(tools.map(({ name }) => name), ["search_tools", "call_tool"]);
    assert(tokens < 500, `the short list takes ${tokens} tokens`);
    // It checks all tools, but only what a search shows of them.
    assertEquals(findings.map(({ level, place, state }) => [level, place, state]), [
      ["error", `tool ${"long_".repeat(14)}`, sentence("description")],
      ["warning", "tool titled", sentence("description")],
      ["error", "tool make_7", sentence("requires x")],
    ]);
  });
});

Deno.test("mcp call calls a tool that a provider finds but does not list", async () => {
  const provided = `import { createServer, tool, toolProvider } from "@x/mcp";
import { toolSearch } from "@x/mcp/search";
const input = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
const made = tool({ name: "made", input, run: ({ n }) => n + 1 });
// Servers of other libraries return such a result for an unknown tool.
const lost = tool({ name: "opne", run: () => ({ content: [{ type: "text", text: "Tool opne not found" }], isError: true }) });
const find = (name) => [made, lost].find((each) => each.name === name);
const open = tool({ name: "open", run: () => "opened" });
export default createServer({ name: "s", version: "1.0.0", handlers: [open, toolProvider({ find }), SEARCH].flat() });`;
  await withFiles({
    "plain.js": provided.replace("SEARCH", "[]"),
    "search.js": provided.replace("SEARCH", "toolSearch()"),
    "always.js": provided.replace("SEARCH", `toolSearch({ always: ["open", "made", "opn"] })`),
  }, async (cwd) => {
    const checked = await runHere(["check", "always.js", "--json"], { cwd });
    const { findings }: Report = JSON.parse(checked.stdout);
    const kept = findings.filter(({ place }) => place === "tool search_tools");
    assertEquals(kept.map(({ level, state }) => [level, state]), [
      ["warning", sentence("always", "made", "provider")],
      ["warning", sentence("always", "opn", "open?")],
    ]);
    for (const [file, remedy] of [["plain.js", "open?"], ["search.js", "search_tools"]]) {
      const call = (...words: readonly string[]) => runHere(["call", file, ...words], { cwd });
      assertEquals((await call("made", "n=1")).stdout, "2\n");
      const wrong = await call("made");
      assertEquals([wrong.code, toLast(wrong.stdout + wrong.stderr)], [1, sentence("made", "n: required")]);
      for (const word of ["opn", "opne"]) {
        const unknown = await call(word, "n=1");
        assertEquals([unknown.code, toLast(unknown.stderr)], [2, sentence(word, remedy)]);
      }
    }
  });
});
