// Patterns in the schemas of untrusted servers are neither compiled nor run.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { toFields } from "../../src/cli/client/form_field.ts";
import { checkListing } from "../../src/cli/listing_check.ts";
import { sentence } from "../support/messages.ts";

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
