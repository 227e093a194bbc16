// `check` lists the steps of handlers, and warns of links and tasks that clients and crashes would lose.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { runHere } from "./run_here.ts";
import { toFields } from "../../src/cli/client/form_field.ts";
import { checkListing } from "../../src/cli/listing_check.ts";

const links = `import { resourceLink, tool } from "@x/mcp";
const annotations = { readOnlyHint: true };
const about = { description: "Works", annotations, input: { type: "object", properties: {} } };
export default [
  tool({ ...about, name: "bare", run: () => resourceLink("a://a") }),
  tool({ ...about, name: "described", run: () => ["Saved.", resourceLink("a://a")] }),
];`;

Deno.test("check warns of a tool that returns only a resource link", async () => {
  await withFiles({ "s.ts": links }, async (cwd) => {
    const { code, stdout } = await runHere(["check", "s.ts"], { cwd });
    assertEquals(code, 0);
    assertStringIncludes(stdout, `warning: ${sentence("bare", "link", "text")}\n`);
    assertEquals(stdout.match(/warning: /g)?.length, 1, stdout);
  });
});

const resumed = `import { group, tool } from "@x/mcp";
import { task, tasks } from "@x/mcp/tasks";
const annotations = { readOnlyHint: true };
const about = { description: "Works", annotations, input: { type: "object", properties: {} } };
const use = [task({ resume: true })];
export default [
  tasks(),
  tool({ ...about, name: "careless", use, run: async () => await fetch("https://example.com") }),
  tool({ ...about, name: "careful", use, run: async (_, { once }) => await once("a", () => 1) }),
  tool({ ...about, name: "once_only", use: [task()], run: () => "done" }),
  group("g", [tool({ ...about, name: "grouped", use, run: async () => await fetch("https://example.com") })]),
];`;

Deno.test("check warns of a task that resumes without ctx.once", async () => {
  await withFiles({ "s.ts": resumed }, async (cwd) => {
    const { code, stdout } = await runHere(["check", "s.ts"], { cwd });
    assertEquals(code, 0);
    assertStringIncludes(stdout, `warning: ${sentence("careless", "ctx.once", "testTask")}\n`);
    assertStringIncludes(stdout, "warning: tool g_grouped: ");
    assertEquals(stdout.match(/warning: /g)?.length, 2, stdout);
    assertEquals((await runHere(["check", "s.ts", "--strict"], { cwd })).code, 1);
  });
});

const layered = `import { createServer, prompt, tool } from "@x/mcp";
import { confirm, idempotent, retry } from "@x/mcp/layers";
import { task, tasks } from "@x/mcp/tasks";
const audit = (ctx, next) => next();
const pay = tool({
  name: "pay",
  description: "Pays",
  annotations: { idempotentHint: true },
  use: [audit, retry(), confirm("Pay?"), idempotent(() => "1"), task()],
  run: () => "paid",
});
const ask = prompt({ name: "ask", description: "Asks", run: () => "?" });
export default createServer({ name: "s", version: "1.0.0", handlers: [tasks(), pay, ask], use: [audit] });`;

const steps = `
Layers and middleware, in the order in which they run:
  tool pay
    around  io.modelcontextprotocol/tasks
    around  audit
    inside  audit
    key     idempotent
    run     confirm
    run     retry
  prompt ask
    around  audit
`;

Deno.test("check --verbose lists the steps of each handler in the order in which they run", async () => {
  await withFiles({ "s.js": layered }, async (cwd) => {
    const { code, stdout } = await runHere(["check", "s.js", "--verbose"], { cwd });
    assertEquals(code, 0);
    assertStringIncludes(stdout, steps);
    const json = await runHere(["check", "s.js", "--verbose", "--json"], { cwd });
    assertEquals(JSON.parse(json.stdout).steps[1], {
      place: "prompt ask",
      steps: [{ step: "around", layer: "audit" }],
    });
  });
});

// Patterns in the schemas of untrusted servers are neither compiled nor run.

// This pattern has exponential backtracking.
const EVIL = "^(([a-z])+.)+[A-Z]([a-z])+$";
const long = "a".repeat(60);
const text = { type: "string" };

Deno.test("a pattern is neither run nor compiled, wherever it is in a server's schema", () => {
  const input = (property: object) => ({ type: "object", properties: { p: { description: "P", ...property } } });
  const places = [
    { ...text, pattern: EVIL, default: long },
    { default: { k: long }, additionalProperties: { pattern: EVIL } },
    { default: { [long]: 1 }, patternProperties: { [EVIL]: {} } },
    { default: { [long]: 1 }, propertyNames: { pattern: EVIL } },
    { default: [long], items: { anyOf: [{ pattern: EVIL }, {}] } },
    { default: long, not: { pattern: EVIL } },
    { default: long, if: { pattern: EVIL } },
    { ...text, pattern: "(((a{1,1000}){1,1000}){1,1000}", default: "a" },
  ];
  const schemas = [...places.map(input), {
    ...input({ $ref: "#/$defs/e", default: long }),
    $defs: { e: { pattern: EVIL } },
  }];
  const compiled: string[] = [];
  const { RegExp: real } = globalThis;
  const note = (args: readonly unknown[]) => void compiled.push(String(args[0]));
  globalThis.RegExp = new Proxy(real, {
    apply: (target, self, args) => (note(args), Reflect.apply(target, self, args)),
    construct: (target, args) => (note(args), Reflect.construct(target, args)),
  });
  try {
    for (const inputSchema of schemas) {
      const tools = [{ name: "t", description: "T", inputSchema, outputSchema: inputSchema }];
      const found = checkListing({ tools, resources: [], templates: [], prompts: [] }, {
        maxTokens: 20_000,
        isTrusted: false,
      });
      assertEquals(found.filter(({ level }) => level === "error"), []);
    }
    let nested: object = { pattern: EVIL };
    for (let i = 0; i < 100_000; i++) nested = { items: nested };
    const tools = [{ name: "t", description: "T", inputSchema: input({ default: 1, ...nested }) }];
    checkListing({ tools, resources: [], templates: [], prompts: [] }, { maxTokens: Infinity, isTrusted: false });
    for (const place of places) {
      const [field] = toFields({ properties: { f: { ...place, type: "string" } } });
      assert("value" in field.read(long));
    }
  } finally {
    globalThis.RegExp = real;
  }
  assertEquals(compiled.filter((source) => source.includes(EVIL) || source.includes("1000}")), [], "compiled");
});

Deno.test("defaults in schemas without patterns are validated", () => {
  const inputSchema = { type: "object", properties: { pattern: { type: "integer", description: "P", default: "x" } } };
  const found = checkListing(
    { tools: [{ name: "t", description: "T", inputSchema }], resources: [], templates: [], prompts: [] },
    { maxTokens: 20_000, isTrusted: false },
  );
  assertStringIncludes(found[0].state, sentence("pattern"));
});
