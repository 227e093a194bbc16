// Whole numbers beyond 2^53: results keep their digits as texts, and a next call can send them as they are.
import { assert, assertEquals } from "@std/assert";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { httpTool } from "../../src/ready/ready.ts";
import { compareCosts } from "../support/cost.ts";
import { sentence } from "../support/messages.ts";
import { testClient } from "../support/test_server.ts";
import { withApi } from "../ready/api.ts";
import { post as withBody, ref, toDocument, withEcho } from "./echo.ts";

const LARGE = "18014398509481985";
const body = `{"id":${LARGE},"list":[-${LARGE},1],"price":12345678901234567.5,"huge":1e30,"small":7}`;
const exact = { id: LARGE, list: [`-${LARGE}`, 1], price: 12345678901234567.5, huge: 1e30, small: 7 };
const respond = () => new Response(body, { headers: { "content-type": "application/json" } });

const int64 = { type: "integer", format: "int64" };
const schemas = {
  Account: { type: "object", properties: { id: int64, parent: ref("Account") } },
  Either: { anyOf: [{ type: "string" }, int64] },
  Maybe: { properties: { id: { anyOf: [int64, { type: "null" }] } } },
};

for (const era of ["modern", "legacy"] as const) {
  for (const transport of ["http", "pipe"] as const) {
    Deno.test(`a response with large numbers is structured content with texts (${era} over ${transport})`, async () => {
      const success = { description: "", content: { "application/json": { schema: { properties: { id: int64 } } } } };
      const document = toDocument({ a: { responses: { 200: success } } });
      await withApi(respond, async (host) => {
        const tool = httpTool({
          name: "plain",
          fetch: { url: `http://${host}/`, allowPrivate: [host] },
        });
        const api = openapi(document, { fetch: respond });
        await using client = await testClient({ handlers: [tool, api] }, { era, transport });
        for (const name of ["plain", "a"]) {
          const { content, structuredContent } = await client.callTool(name);
          assertEquals(structuredContent, exact);
          assertEquals(content, [{ type: "text", text: body }]);
        }
      });
      const strict = openapi(document, { fetch: respond, output: "strict" });
      await using client = await testClient({ handlers: [strict] }, { era, transport });
      const { content, isError } = await client.callTool("a");
      assertEquals([content, isError], [[{ type: "text", text: sentence("id", "2^53") }], true]);
    });
  }
}

Deno.test("an argument with 64 bits takes digits as text, and sends them as they are", async () => {
  const parameters = [
    { name: "id", in: "path", required: true, schema: int64 },
    { name: "after", in: "query", schema: { type: ["integer", "null"], format: "int64" } },
    { name: "X-Id", in: "header", schema: int64 },
    { name: "list", in: "query", schema: { type: "array", items: int64 } },
  ];
  const mixed = {
    type: "object",
    properties: { id: int64, account: schemas.Account, ids: { type: "array", items: int64 } },
  };
  const document = toDocument({
    get: { path: "/get/{id}", parameters },
    account: withBody(ref("Account")),
    all: withBody({
      allOf: [ref("Account"), { properties: { more: { additionalProperties: int64 } } }],
    }),
    either: withBody(ref("Either")),
    maybe: withBody(ref("Maybe")),
    form: withBody(mixed, "application/x-www-form-urlencoded"),
    parts: withBody(mixed, "multipart/form-data"),
  }, { components: { schemas } });
  for (const flatten of [false, true]) {
    await withEcho(document, { flatten }, async ({ client, send, call }) => {
      const { target, headers } = await send("get", { id: LARGE, after: `-${LARGE}`, "X-Id": LARGE, list: [LARGE, 2] });
      assertEquals(target, `/get/${LARGE}?after=-${LARGE}&list=${LARGE}&list=2`);
      assertEquals(headers["x-id"], LARGE);
      const post = async (name: string, value: Readonly<Record<string, unknown>>) =>
        (await send(name, flatten ? value : { body: value })).body;
      assertEquals(
        await post("account", { id: LARGE, parent: { id: "007", parent: { id: 8 } } }),
        `{"id":${LARGE},"parent":{"id":7,"parent":{"id":8}}}`,
      );
      if (!flatten) {
        assertEquals(await post("all", { id: LARGE, more: { a: LARGE } }), `{"id":${LARGE},"more":{"a":${LARGE}}}`);
        assertEquals(await post("maybe", { id: LARGE }), `{"id":${LARGE}}`);
        // A text that is valid as a text stays a text.
        assertEquals((await send("either", { body: LARGE })).body, `"${LARGE}"`);
      }
      const form = await post("form", { id: LARGE, account: { id: LARGE }, ids: [LARGE] });
      assertEquals(decodeURIComponent(form), `id=${LARGE}&account={"id":${LARGE}}&ids=${LARGE}`);
      assert((await post("parts", { id: LARGE, account: { id: LARGE } })).includes(`{"id":${LARGE}}`));
      for (const id of ["", "1.5", "1e3", "x1", `${LARGE}&a=b`, "١"]) {
        assert((await call("get", { id })).isError, id);
      }
      // A number that JavaScript has rounded is refused.
      assert((await call("get", { id: Number(LARGE) + 2 })).isError);
      const tools = await client.listTools();
      const { properties } = Object(tools.find(({ name }) => name === "get")?.inputSchema);
      assertEquals(properties.id, { type: ["integer", "string"], format: "int64", pattern: "^-?\\d+$" });
      assertEquals(properties.after.type, ["integer", "null", "string"]);
    });
  }
});

Deno.test("hostile: the cost of a deep argument, or of many digits, grows with its size", async () => {
  const either = (op: string) => ({
    properties: { op: { const: op }, all: { type: "array", items: { $ref: FILTER } } },
  });
  const FILTER = "#/components/schemas/Filter";
  const Filter = { anyOf: [either("and"), either("or"), { properties: { op: { const: "eq" }, id: int64 } }] };
  const document = toDocument({ find: withBody({ $ref: FILTER }) }, { components: { schemas: { Filter } } });
  const handler = openapi(document, { fetch: async (request) => new Response(String((await request.text()).length)) });
  await using client = await testClient({ handlers: [handler] });
  const find = async (body: unknown) => await client.callTool("find", { body });
  const nest = (depth: number): unknown => depth ? { op: "and", all: [nest(depth - 1)] } : { op: "eq", id: LARGE };
  assertEquals((await find(nest(18))).isError, undefined);
  const costs = await compareCosts(
    { shallow: () => find(nest(3)), deep: () => find(nest(18)) },
    ({ shallow, deep }) => deep <= 12 * shallow,
  );
  assertEquals(costs, undefined);
  const zeros = "0".repeat(1000);
  const { content } = await find({ op: "eq", id: `-${zeros}${LARGE}` });
  assertEquals(content, [{ type: "text", text: String(`{"op":"eq","id":-${LARGE}}`.length) }]);
  const id = "9".repeat(1_000_000);
  assertEquals((await find({ op: "eq", id })).isError, undefined);
  const digits = await compareCosts(
    { text: () => find({ op: "eq", note: id }), digits: () => find({ op: "eq", id }) },
    ({ text, digits }) => digits <= 8 * text,
  );
  assertEquals(digits, undefined);
});
