// ctx.session(): the value that the server's `sessionData` function returned. The function runs once per session, or
// once per request if there are no sessions.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, createServer, McpError, tool } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour, plainTool, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const text = () => "";

function toCircle(): object {
  const circle: Record<string, unknown> = {};
  return Object.assign(circle, { circle });
}

const show = plainTool("show", (ctx) => JSON.stringify([ctx.session(), ctx.session() === ctx.session()]));

behaviour(
  "ctx.session is computed once per session, or once per request that reads it",
  async (connect, { era }) => {
    let computed = 0;
    const idle = tool({ name: "idle", run: () => "ok" });
    const { client } = await connect({
      handlers: [show, idle],
      sessionData: (ctx) => ({ client: ctx.client.info?.name, number: ++computed }),
    });
    await client.callTool("idle");
    for (const request of [1, 2]) {
      const wanted = { client: "test", number: era === "modern" ? request : 1 };
      assertEquals(JSON.parse(textOf(await client.callTool("show"))), [wanted, true]);
    }
    assertEquals(computed, era === "modern" ? 2 : 1);
  },
);

behaviour("without `sessionData`, ctx.session is undefined", async (connect) => {
  const bare = tool({ name: "bare", run: (_, ctx) => `${ctx.session()}` });
  const { client } = await connect({ handlers: [bare] });
  assertEquals(textOf(await client.callTool("bare")), "undefined");
});

/** Each entry has a function that creates session data that cannot be stored, and the message of the error. */
const UNUSABLE: Readonly<Record<string, readonly [make: () => unknown, message: string]>> = {
  "a map": [() => new Map(), sentence()],
  "a set within an object": [() => ({ roles: new Set(["a"]) }), sentence()],
  "a date": [() => new Date(), sentence()],
  "a date within an object": [() => ({ at: new Date() }), sentence()],
  "NaN": [() => NaN, sentence()],
  "a bigint": [() => ({ id: 1n }), sentence()],
  "a circle": [() => toCircle(), sentence()],
  "a function": [() => text, sentence()],
  "a symbol": [() => Symbol("x"), sentence()],
  "an instance of a class": [() => new (class User {})(), sentence()],
  "a hole in an array": [() => [undefined], sentence()],
  "a promise": [() => Promise.resolve(1), sentence("per")],
  "a promise that rejects": [() => Promise.reject(new Error("x")), sentence("per")],
  "2049 characters": [() => "x".repeat(2047), sentence(2048)],
  "a deep value": [() => JSON.parse("[".repeat(3000) + "]".repeat(3000)), sentence(2048)],
};

behaviour(
  "session data that cannot be stored causes the same error in every revision, after the session function has returned",
  async (connect, { era }) => {
    let make: () => unknown = () => "x".repeat(2046);
    const { client, join, takeFaults } = await connect({ handlers: [show], sessionData: () => make() });
    assertEquals(JSON.parse(textOf(await client.callTool("show")))[0].length, 2046);
    for (const [name, [wrong, message]] of Object.entries(UNUSABLE)) {
      make = wrong;
      if (era === "legacy") assertEquals((await assertRejects(() => join(), McpError)).code, -32603, name);
      else assertEquals((await client.callTool("show")).isError, true, name);
      const [fault, ...others] = takeFaults();
      assertEquals(others, []);
      assertEquals(Object(fault.error).message, message, name);
    }
  },
);

behaviour(
  "ctx.session(session) has the return type of the server's session function, and refuses any other function",
  async (connect) => {
    const session = ({ client }: Context) => ({ name: client.info?.name ?? "unknown", visits: 1 });
    const typed = plainTool("typed", ({ session: read }) => {
      const { name, visits } = read(session);
      const length: number = name.length + visits;
      // @ts-expect-error: the function returns no such field
      read(session).tenant;
      return `${name} ${length}`;
    });
    const other = tool({ name: "other", run: (_, ctx) => ctx.session(() => ({ name: "forged" })).name });
    const change = tool({ name: "change", run: (_, ctx) => Object.assign(ctx.session(session), { visits: 2 }) && "" });
    const { client, takeFaults } = await connect({ handlers: [typed, other, change], sessionData: session });
    assertEquals(textOf(await client.callTool("typed")), "test 5");
    assertEquals((await client.callTool("other")).isError, true);
    assertEquals((await client.callTool("change")).isError, true);
    const messages = takeFaults().map(({ error }) => Object(error).message);
    assertEquals(messages[0], sentence("createServer"));
    assertEquals(textOf(await client.callTool("typed")), "test 5");
  },
);

Deno.test("over HTTP, session data survives a restart without a store", async () => {
  let started = 0;
  const start = () => {
    const number = ++started;
    return createServer({
      name: "sessions",
      version: "1.0.0",
      handlers: [show],
      secret: "0123456789abcdef0123456789abcdef",
      sessionData: ({ principal }) => ({ tenant: principal?.id, number }),
    });
  };
  let server = start();
  const principal = { id: "ada" };
  const forward = { ...server, fetch: (request: Request) => server.fetch(request, { principal }) };
  await using client = await connectTest(forward, { era: "legacy" });
  assertEquals(JSON.parse(textOf(await client.callTool("show"))), [{ tenant: "ada", number: 1 }, true]);
  await server.close();
  server = start();
  assertEquals(JSON.parse(textOf(await client.callTool("show"))), [{ tenant: "ada", number: 1 }, true]);
  await server.close();
});
