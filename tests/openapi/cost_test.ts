// Tests the cost of a call: an operation of a document against a tool that is written by hand with the same sender.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { sendRequest } from "../../src/ready/ready.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { compareCosts } from "../support/cost.ts";

const fetch = (request: Request) => Response.json({ url: request.url, ok: true });

const parameters = [
  { name: "id", in: "path", required: true, schema: { type: "string" } },
  { name: "limit", in: "query", schema: { type: "integer", minimum: 1 } },
  { name: "tags", in: "query", schema: { type: "array", items: { type: "string" } } },
  { name: "X-Version", in: "header", schema: { type: "string" } },
];
const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const requestBody = { required: true, content: { "application/json": { schema } } };
const document = {
  openapi: "3.1.0",
  paths: {
    "/pets/{id}": { put: { operationId: "put", parameters, requestBody } },
    "/pets": { get: { operationId: "list" } },
  },
};

const byHand = tool({
  name: "by_hand",
  input: {
    type: "object",
    properties: {
      id: { type: "string" },
      limit: { type: "integer", minimum: 1 },
      tags: { type: "array", items: { type: "string" } },
      "X-Version": { type: "string" },
      body: schema,
    },
    required: ["id", "body"],
    additionalProperties: false,
  },
  async run({ id, limit, tags, body, "X-Version": version }: Record<string, unknown>, { signal }) {
    const query = new URLSearchParams({ limit: String(limit) });
    for (const tag of tags as string[]) query.append("tags", tag);
    const headers = { "content-type": "application/json", "x-version": String(version) };
    const url = `http://localhost/pets/${encodeURIComponent(String(id))}?${query}`;
    const request = new Request(url, { method: "PUT", headers, body: JSON.stringify(body), signal });
    return await (await sendRequest(request, { fetch })).json();
  },
});

const listByHand = tool({
  name: "list_by_hand",
  run: async (_, { signal }) =>
    await (await sendRequest(new Request("http://localhost/pets", { signal }), { fetch })).json(),
});

const pairs = [
  {
    name: "put",
    hand: "by_hand",
    args: { id: "a b", limit: 5, tags: ["x", "y"], "X-Version": "2", body: { name: "Ada" } },
  },
  { name: "list", hand: "list_by_hand", args: {} },
];

for (const { name, hand, args } of pairs) {
  Deno.test(`a call of an operation costs at most 1.5 times a tool that is written by hand: ${name}`, async () => {
    const handlers = [openapi(document, { fetch }), byHand, listByHand];
    await using client = await connectTest(createServer({ name: "cost", version: "1.0.0", handlers }));
    const run = async (name: string) => {
      for (let i = 0; i < 100; i++) await client.callTool(name, args);
    };
    assertEquals(
      (await client.callTool(name, args)).structuredContent,
      (await client.callTool(hand, args)).structuredContent,
    );
    const costs = await compareCosts(
      { operation: () => run(name), byHand: () => run(hand) },
      ({ operation, byHand }) => operation <= 1.5 * byHand,
    );
    assertEquals(costs, undefined);
  });
}
