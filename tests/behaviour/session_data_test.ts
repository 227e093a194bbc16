// ctx.session(): the value that the server's `session` function returned. The function runs once per session, or once
// per request if there are no sessions.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { type Context, createServer, tool } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour, textOf } from "../support/behaviour.ts";

const HELD = "a value that JSON cannot represent; use objects, arrays, strings, numbers and booleans";

const text = () => "";

function toCircle(): object {
  const circle: Record<string, unknown> = {};
  return Object.assign(circle, { circle });
}

const show = tool({
  name: "show",
  run: (_, ctx) => JSON.stringify([ctx.session(), ctx.session() === ctx.session()]),
});

behaviour(
  "ctx.session is computed once per session, or once per request that reads it",
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
  const bare = tool({ name: "bare", run: (_, ctx) => `${ctx.session()}` });
  const { client } = await connect({ handlers: [bare] });
  assertEquals(textOf(await client.callTool("bare")), "undefined");
});

/** Each entry has a function that creates session data that cannot be stored, and the state named in the error. */
const UNUSABLE: Readonly<Record<string, readonly [make: () => unknown, state: string]>> = {
  "a map": [() => new Map(), HELD],
  "a set within an object": [() => ({ roles: new Set(["a"]) }), HELD],
  "a date": [() => new Date(), HELD],
  "a date within an object": [() => ({ at: new Date() }), HELD],
  "NaN": [() => NaN, HELD],
  "a bigint": [() => ({ id: 1n }), HELD],
  "a circle": [() => toCircle(), HELD],
  "a function": [() => text, HELD],
  "a symbol": [() => Symbol("x"), HELD],
  "an instance of a class": [() => new (class User {})(), HELD],
  "a hole in an array": [() => [undefined], HELD],
  "a promise": [() => Promise.resolve(1), "a promise; to load data, use a service with `per`"],
  "a promise that rejects": [() => Promise.reject(new Error("x")), "a promise; to load data, use a service with `per`"],
  "2049 characters": [() => "x".repeat(2047), "more than 2048 characters of JSON; return an id, and load the data"],
  "a deep value": [() => JSON.parse("[".repeat(3000) + "]".repeat(3000)), "more than 2048 characters of JSON"],
};

behaviour(
  "session data that cannot be stored causes the same error in every revision, after the session function has returned",
  async (connect, { era }) => {
    let make: () => unknown = () => "x".repeat(2046);
    const { client, join, takeFaults } = await connect({ handlers: [show], session: () => make() });
    assertEquals(JSON.parse(textOf(await client.callTool("show")))[0].length, 2046);
    for (const [name, [wrong, state]] of Object.entries(UNUSABLE)) {
      make = wrong;
      if (era === "legacy") await assertRejects(() => join(), Error, "Internal error", name);
      else assertEquals((await client.callTool("show")).isError, true, name);
      const [fault, ...others] = takeFaults();
      assertEquals(others, []);
      assertStringIncludes(
        Object(fault.error).message,
        `Cannot store the session value: session returned ${state}`,
        name,
      );
    }
  },
);

behaviour(
  "ctx.session(session) has the return type of the server's session function, and refuses any other function",
  async (connect) => {
    const session = ({ client }: Context) => ({ name: client.info?.name ?? "unknown", visits: 1 });
    const typed = tool({
      name: "typed",
      run(_, { session: read }) {
        const { name, visits } = read(session);
        const length: number = name.length + visits;
        // @ts-expect-error: the function returns no such field
        read(session).tenant;
        return `${name} ${length}`;
      },
    });
    const other = tool({ name: "other", run: (_, ctx) => ctx.session(() => ({ name: "forged" })).name });
    const change = tool({ name: "change", run: (_, ctx) => Object.assign(ctx.session(session), { visits: 2 }) && "" });
    const { client, takeFaults } = await connect({ handlers: [typed, other, change], session });
    assertEquals(textOf(await client.callTool("typed")), "test 5");
    assertEquals((await client.callTool("other")).isError, true);
    assertEquals((await client.callTool("change")).isError, true);
    const messages = takeFaults().map(({ error }) => Object(error).message);
    assertStringIncludes(
      messages[0],
      "Cannot read the session value: the passed function is not the session option of createServer",
    );
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
      session: ({ principal }) => ({ tenant: principal?.id, number }),
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
