// A converted path parameter has only one valid spelling.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { createServer, tool } from "../../mod.ts";
import { toCall } from "./unread.ts";

/**
 * Calls a tool at a path for each of the given segments. Returns the statuses, and the number of paths that were
 * created.
 */
async function visit(pathSchema: z.ZodObject, segments: readonly string[], path = "/t/:id/mcp") {
  const made: unknown[] = [];
  const here = tool({ name: "here", run: () => "here" });
  const handlers = (found: unknown) => {
    made.push(found);
    return [here];
  };
  const server = createServer({ name: "tenants", version: "1.0.0", path, pathSchema, handlers });
  const statuses: Record<string, number> = {};
  for (const segment of segments) {
    const { headers, body } = toCall("here");
    const response = await server.fetch(
      new Request(`http://localhost/t/${segment}/mcp`, { method: "POST", headers, body }),
    );
    await response.text();
    statuses[segment] = response.status;
  }
  await server.close();
  return { statuses, made: made.length };
}

const at = (id: z.ZodType) => z.object({ id });

const cases: { readonly [name: string]: [z.ZodObject, found: string[], lost: string[]] } = {
  "a coerced number": [
    at(z.coerce.number()),
    ["1", "-1", "1.5", "1e%2B21", "0"],
    ["01", "0x1", "%201", "1%20", "1.0", "+1", "1e0", "1_0", "-0", "0b1", "%09%31", "1.50", "1E21", "%EF%BC%91"],
  ],
  "a number that the server normalizes": [
    at(z.number()),
    ["1", "10"],
    ["01", "1.0", "1e0", "-0", "1e1", "%201", "1E%2B21"],
  ],
  "a bigint": [at(z.string().regex(/^\s*[-\dx]+$/).transform(BigInt)), ["1", "90071992547409931"], [
    "01",
    "0x1",
    "%201",
    "-0",
  ]],
  "a boolean": [at(z.coerce.boolean()), ["true", "false"], ["1", "x", "TRUE"]],
  "a lower-case text": [at(z.string().toLowerCase()), ["acme", "%61cme", "%C3%A9"], [
    "ACME",
    "Acme",
    "%41cme",
    "%C3%89",
  ]],
  "a trimmed text": [at(z.string().trim()), ["acme"], ["%20acme", "acme%20", "acme%09", "%C2%A0acme"]],
  "a normalized text": [at(z.string().normalize()), ["%C3%A9", "%c3%a9"], ["e%CC%81"]],
  "an asynchronous conversion": [
    at(z.string().transform((text) => Promise.resolve(Number(text)))),
    ["1"],
    ["01", "0x1", "%201"],
  ],
  "a text to which the schema adds a prefix": [at(z.string().transform((text) => `t-${text}`)), ["acme", "t-acme"], []],
  "an object": [at(z.string().regex(/^[a-z]+$/).transform((text) => ({ text }))), ["acme"], ["ACME", "a1"]],
  "a schema that omits the parameter": [z.object({}), ["acme"], []],
};

for (const [name, [params, found, lost]] of Object.entries(cases)) {
  Deno.test(`${name} has only one valid spelling`, async () => {
    const { statuses, made } = await visit(params, [...found, ...lost]);
    const expected = [...found.map((segment) => [segment, 200]), ...lost.map((segment) => [segment, 404])];
    assertEquals(statuses, Object.fromEntries(expected));
    const decoded = new Set(found.map((segment) => decodeURIComponent(segment)));
    assertEquals(made, decoded.size);
  });
}

Deno.test("each of several parameters has only one valid spelling, even if another parameter has no canonical spelling", async () => {
  const params = z.object({ id: z.coerce.number(), of: z.string().transform((text) => `t-${text}`) });
  const path = "/t/:id/:of/mcp";
  const { statuses } = await visit(params, ["1/a", "01/a", "1/b", "%31/a"], path);
  assertEquals(statuses, { "1/a": 200, "01/a": 404, "1/b": 200, "%31/a": 200 });
});
