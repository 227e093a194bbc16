// ctx.session: what the server's `session` returned, once per session, or per request where there are no sessions.
import { assertEquals, assertRejects } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { connect } from "../../src/testing/testing.ts";
import { behaviour, textOf } from "../support/behaviour.ts";

const show = tool({
  name: "show",
  run: (_, ctx) => JSON.stringify([ctx.session, ctx.session === ctx.session]),
});

behaviour(
  "ctx.session is computed once per session, or once per request in which it is read",
  async (connect, { era }) => {
    let computed = 0;
    const idle = tool({ name: "idle", run: () => "ok" });
    const { client } = await connect({
      handlers: [show, idle],
      session: (ctx) => ({ client: ctx.client.info?.name, number: ++computed }),
    });
    await client.callTool("idle");
    for (const request of [1, 2]) {
      const wanted = { client: "test", number: era === "modern" ? request : 1 };
      assertEquals(JSON.parse(textOf(await client.callTool("show"))), [wanted, true]);
    }
    assertEquals(computed, era === "modern" ? 2 : 1);
  },
);

behaviour("without `session`, ctx.session is undefined", async (connect) => {
  const bare = tool({ name: "bare", run: (_, ctx) => `${ctx.session}` });
  const { client } = await connect({ handlers: [bare] });
  assertEquals(textOf(await client.callTool("bare")), "undefined");
});

behaviour(
  "a session that is not JSON, too long or a promise refuses initialize and is reported",
  async (connect) => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [new Map(), "a value that JSON cannot hold; use objects, arrays, strings, numbers and booleans"],
      [{ at: new Date() }, "a value that JSON cannot hold; use objects, arrays, strings, numbers and booleans"],
      [NaN, "a value that JSON cannot hold; use objects, arrays, strings, numbers and booleans"],
      [Promise.resolve(1), "a promise; use a service with `per` for data that is loaded"],
      ["x".repeat(2047), "more than 2048 characters of JSON; keep an id, and load the rest with a service"],
    ];
    let data: unknown = "x".repeat(2046);
    const { join, takeFaults } = await connect({ handlers: [show], session: () => data });
    for (const [value, state] of wrong) {
      data = value;
      await assertRejects(() => join(), Error, "Internal error");
      assertEquals(takeFaults().map(({ error }) => Object(error).message), [
        `Cannot keep the session: session returned ${state}`,
      ]);
    }
  },
  { eras: ["legacy"] },
);

Deno.test("the data of a session over HTTP survives a restart, without a store", async () => {
  let started = 0;
  const start = () => {
    const number = ++started;
    return createServer({
      name: "sessions",
      version: "1.0.0",
      handlers: [show],
      secret: "0123456789abcdef0123456789abcdef",
      session: ({ principal }) => ({ tenant: principal?.id, number }),
    });
  };
  let server = start();
  const principal = { id: "ada" };
  const forward = { ...server, fetch: (request: Request) => server.fetch(request, { principal }) };
  await using client = await connect(forward, { era: "legacy" });
  assertEquals(JSON.parse(textOf(await client.callTool("show"))), [{ tenant: "ada", number: 1 }, true]);
  await server.close();
  server = start();
  assertEquals(JSON.parse(textOf(await client.callTool("show"))), [{ tenant: "ada", number: 1 }, true]);
  await server.close();
});
