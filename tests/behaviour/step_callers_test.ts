// Caches and circuit breakers with callers that have no principal, and with several callers.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, type Server, service, tool, ToolError } from "../../mod.ts";
import { cache, circuit, confirm } from "../../src/layers/layers.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, textOf, type Way } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const annotations = { readOnlyHint: true };

function toMailbox({ http, client }: Context): string {
  return http?.headers.get("x-mailbox") ?? client.info?.name ?? "";
}

/** Connects a client whose requests come from an address. */
function joinFrom(server: Server, hostname: string, { era, version }: Way) {
  const fetch = (request: Request) => server.fetch(request, { remoteAddr: { hostname } });
  return connectTest({ ...server, fetch } as Server, { era, transport: "http", revisions: [version] });
}

behaviour(
  "a cache gives no caller the result of another caller that a header, the client or a service identifies",
  async (connect, { transport }) => {
    const mailbox = service("mailbox", ({ ctx }) => ctx.http?.headers.get("x-mailbox") ?? "none", { per: "call" });
    const options = { annotations, use: [cache({ ttlMs: 60_000 })] };
    const handlers = [
      tool({ ...options, name: "header", run: (_input, { http }) => `mail of ${http?.headers.get("x-mailbox")}` }),
      tool({ ...options, name: "name", run: (_input, { client }) => `mail of ${client.info?.name}` }),
      tool({ ...options, name: "sealed", run: (_input, { session }) => `mail of ${session(toMailbox)}` }),
      tool({
        ...options,
        name: "made",
        services: { mailbox },
        run: (_, { services }) => `mail of ${services.mailbox}`,
      }),
    ];
    const { join } = await connect({ handlers, sessionData: toMailbox });
    const toOptions = (id: string) => ({ info: { name: id, version: "1" }, headers: { "x-mailbox": id } });
    const [zoe, yan] = [await join(toOptions("zoe")), await join(toOptions("yan"))];
    for (const name of ["header", "name", "sealed", "made"]) {
      for (const [id, client] of [["zoe", zoe], ["yan", yan], ["zoe", zoe]] as const) {
        // Over stdio, all calls come from the user who started the process.
        if (transport !== "pipe") assertEquals(textOf(await client.callTool(name)), `mail of ${id}`, name);
      }
    }
  },
  { perInstance: "ready" },
);

behaviour(
  "a caller without a principal gets cached results by key, or if the cache is shared",
  async (connect, { transport }) => {
    let runs = 0;
    const run = () => ++runs;
    const input = z.object({ page: z.number().default(1) });
    const kept = cache<{ page: number }>({
      ttlMs: 60_000,
      key: ({ page }, { client }) => page < 9 ? `${client.info?.name} ${page > 4}` : undefined,
    });
    const handlers = [
      tool({ name: "plain", annotations, use: [cache({ ttlMs: 60_000 })], run }),
      tool({ name: "shared", annotations, use: [cache({ ttlMs: 60_000, shared: true })], run }),
      tool({ name: "keyed", annotations, input, use: [kept], run }),
    ];
    const { join } = await connect({ handlers });
    const [zoe, yan] = [
      await join({ info: { name: "zoe", version: "1" } }),
      await join({ info: { name: "yan", version: "1" } }),
    ];
    const list = async (calls: readonly (readonly [typeof zoe, string, number?])[]) => {
      runs = 0;
      const texts = [];
      for (const [client, name, page] of calls) texts.push(textOf(await client.callTool(name, page ? { page } : {})));
      return texts.join(" ");
    };
    const isRemote = transport !== "pipe";
    assertEquals(await list([[zoe, "plain"], [zoe, "plain"], [yan, "plain"]]), isRemote ? "1 2 3" : "1 1 1");
    assertEquals(await list([[zoe, "shared"], [zoe, "shared"], [yan, "shared"]]), "1 1 1");
    assertEquals(
      await list([[zoe, "keyed"], [zoe, "keyed"], [yan, "keyed"], [yan, "keyed"], [zoe, "keyed", 5]]),
      "1 1 2 2 3",
    );
    assertEquals(await list([[zoe, "keyed", 9], [zoe, "keyed", 9]]), "1 2");
    if (transport === "pipe") return;
    // The key is a part of the key of a principal too, and the principal is a part of a key.
    const principal = { id: "ivy" };
    const [ivy, other] = [
      await join({ principal, info: { name: "zoe", version: "1" } }),
      await join({ principal, info: { name: "yan", version: "1" } }),
    ];
    assertEquals(
      await list([[ivy, "keyed"], [ivy, "keyed"], [other, "keyed"], [ivy, "plain"], [other, "plain"]]),
      "1 1 2 3 3",
    );
  },
  { perInstance: "ready" },
);

behaviour("a call fails if the key of its cache is neither a string nor undefined", async (connect) => {
  let [given, runs]: [unknown, number] = [undefined, 0];
  const odd = tool({
    name: "odd",
    annotations,
    use: [cache({
      ttlMs: 60_000,
      key: () => {
        if (given instanceof Error) throw given;
        return (typeof given === "function" ? given() : given) as string;
      },
    })],
    run: () => ++runs,
  });
  const { client, takeFaults } = await connect({ handlers: [odd] });
  const late = () => Promise.reject(new Error("late"));
  for (const value of [null, 7, false, {}, ["a"], () => Promise.resolve("a"), late]) {
    given = value;
    assert((await client.callTool("odd")).isError);
    assertEquals(takeFaults().map(({ error }) => String(error)), [sentence("TypeError", 'tool "odd"', "key()")]);
  }
  given = new Error("no header");
  assert((await client.callTool("odd")).isError);
  assertEquals(takeFaults().map(({ error }) => String(error)), ["Error: no header"]);
  assertEquals(runs, 0);
  given = "";
  assertEquals([textOf(await client.callTool("odd")), textOf(await client.callTool("odd"))], ["1", "1"]);
}, { perInstance: "ready" });

Deno.test("a cache checks the types of key and shared", () => {
  assertThrows(() => cache({ ttlMs: 1, key: "a" as never }), TypeError, sentence("key"));
  assertThrows(() => cache({ ttlMs: 1, shared: 1 as never }), TypeError, sentence("shared"));
});

/** A tool that fails for all inputs but `ok`, or for all inputs while `isDown`. */
function makeReader(options: { readonly failures: number; readonly retryMs: number }) {
  const state = { isDown: false };
  const reader = tool({
    name: "reader",
    input: z.object({ path: z.string() }),
    use: [circuit(options)],
    run: ({ path }) => {
      if (state.isDown || path !== "ok") throw new RangeError(path);
      return "read";
    },
  });
  return { reader, state };
}

type Caller = Awaited<ReturnType<typeof joinFrom>>;

async function read(client: Caller, path = "ok"): Promise<string> {
  const text = textOf(await client.callTool("reader", { path }));
  return text === "read" ? text : text.includes("is not available") ? "refused" : "failed";
}

async function fail(clients: readonly Caller[], times: number): Promise<void> {
  for (const client of clients) for (let i = 0; i < times; i++) await client.callTool("reader", { path: "missing" });
}

const breaker = { failures: 5, retryMs: 4000 };

behaviour("two clients with failing inputs never close a tool for other clients", async (connect, { transport }) => {
  if (transport === "pipe") return;
  const { reader } = makeReader(breaker);
  const { join, takeFaults } = await connect({ clock: fakeClock(), handlers: [reader] });
  const [mal, moe, ivy] = await Promise.all(["mal", "moe", "ivy"].map((id) => join({ principal: { id } })));
  await fail([mal, moe, mal, moe], 9);
  for (let i = 0; i < 3; i++) assertEquals(await read(ivy), "read");
  // The success of another client does not close the circuit of a client with failing inputs.
  assertEquals([await read(mal), await read(moe)], ["refused", "refused"]);
  takeFaults();
}, { perInstance: "ready" });

behaviour("several clients with failing inputs cannot keep a tool closed", async (connect, { transport }) => {
  if (transport === "pipe") return;
  const clock = fakeClock();
  const { reader } = makeReader(breaker);
  const { join, takeFaults } = await connect({ clock, handlers: [reader] });
  const attackers = await Promise.all(["mal", "moe", "may"].map((id) => join({ principal: { id } })));
  const [ivy, max] = await Promise.all(["ivy", "max"].map((id) => join({ principal: { id } })));
  for (let round = 0; round < 3; round++) {
    await clock.advance(4000);
    await fail(attackers, 3);
    // The circuit is open for all clients. The first client that has not failed tests the tool, even if the others have
    // just used their own tests.
    assertEquals(await read(ivy), "read", `round ${round}`);
    assertEquals(await read(attackers[0]), "read");
  }
  // A fourth account can take the test call of the clients that have not failed, but only once.
  await clock.advance(4000);
  await fail([...attackers, max], 3);
  assertEquals(await read(ivy), "refused");
  await clock.advance(4000);
  await fail([...attackers, max], 3);
  assertEquals(await read(ivy), "read");
  // Soon after a success, failures of several clients show no outage.
  await fail(attackers, 5);
  assertEquals([await read(attackers[0]), await read(ivy)], ["refused", "read"]);
  takeFaults();
}, { perInstance: "ready" });

behaviour("an outage opens the circuit for all clients, and one success closes it", async (connect, { transport }) => {
  if (transport === "pipe") return;
  const clock = fakeClock();
  const { reader, state } = makeReader(breaker);
  const { join, takeFaults } = await connect({ clock, handlers: [reader] });
  const clients = await Promise.all(["a", "b", "c", "d", "e"].map((id) => join({ principal: { id } })));
  const [a, b, c, d, e] = clients;
  assertEquals(await read(a), "read");
  state.isDown = true;
  await clock.advance(4000);
  for (const client of [a, b, c, a, b]) assertEquals(await read(client), "failed");
  // The circuit is open for all. Each client that has failed has its own test call, and the others have one together.
  assertEquals([await read(a), await read(b), await read(c)], ["refused", "refused", "refused"]);
  assertEquals([await read(d), await read(e), await read(d)], ["failed", "refused", "refused"]);
  await clock.advance(3999);
  assertEquals(await read(a), "refused");
  await clock.advance(1);
  assertEquals([await read(a), await read(a), await read(e)], ["failed", "refused", "failed"]);
  state.isDown = false;
  await clock.advance(4000);
  assertEquals(await read(c), "read");
  for (const client of clients) assertEquals(await read(client), "read");
  takeFaults();
}, { perInstance: "ready" });

behaviour(
  "failures of addresses never open the circuit for principals, and an IPv6 /56 is one client",
  async (connect, way) => {
    const clock = fakeClock();
    const { reader } = makeReader({ failures: 3, retryMs: 4000 });
    const { server, join, takeFaults } = await connect({ clock, handlers: [reader] });
    const from = (hostname: string) => joinFrom(server, hostname, way);
    await using ivy = await join({ principal: { id: "ivy" } });
    await using near = await from("2001:db8:7:ff::9");
    await using far = await from("2001:db8:8:1::9");
    for (let i = 0; i < 6; i++) {
      await using attacker = await from(`2001:db8:7:${i}::1`);
      await fail([attacker], 1);
    }
    // Six addresses of one network are one client, whose own circuit is open.
    assertEquals([await read(near), await read(far)], ["failed", "read"].map((text, i) => i ? text : "refused"));
    await clock.advance(4000);
    for (let i = 0; i < 6; i++) {
      await using attacker = await from(`2001:db8:${20 + i}:1::1`);
      await fail([attacker], 1);
    }
    assertEquals(await read(ivy), "read");
    takeFaults();
  },
  { perInstance: "ready", transports: ["http"] },
);

behaviour("more clients than a circuit breaker remembers do not share failures", async (connect, way) => {
  const { reader } = makeReader({ failures: 2, retryMs: 4000 });
  const { server, takeFaults } = await connect({ clock: fakeClock(), handlers: [reader] });
  for (let i = 0; i < 1010; i++) {
    await using one = await joinFrom(server, `2001:db8:${i.toString(16)}:1::1`, way);
    await fail([one], 1);
    if (i % 2) assertEquals(await read(one), "read");
  }
  await using last = await joinFrom(server, "203.0.113.9", way);
  assertEquals([await read(last, "a"), await read(last)], ["failed", "read"]);
  takeFaults();
}, { perInstance: "ready", transports: ["http"], eras: ["modern"] });

behaviour(
  "a cache keeps no result that depends on an answer, whoever has asked, but may keep one after consent",
  async (connect) => {
    const schema = z.object({ pin: z.string() });
    const askPin = async (ctx: Pick<Context, "elicit">) =>
      (await ctx.elicit("pin", { message: "PIN?", schema })).content?.pin;
    const pin = service("pin", async ({ ctx }) => await askPin(ctx), { per: "call" });
    let latest: string | undefined;
    const options = { annotations, use: [cache({ ttlMs: 60_000, shared: true })] };
    const ofMiddleware = async (ctx: Context, next: () => Promise<Record<string, unknown>>) => {
      latest = await askPin(ctx);
      return await next();
    };
    let consents = 0;
    let runs = 0;
    const { join } = await connect({
      handlers: [
        tool({ ...options, name: "direct", run: async (_input, ctx) => `for ${await askPin(ctx)}` }),
        tool({ ...options, name: "service", services: { pin }, run: (_input, { services }) => `for ${services.pin}` }),
        tool({
          ...options,
          name: "middleware",
          use: [ofMiddleware, ...options.use],
          run: () => `for ${latest}`,
        }),
        tool({ ...options, name: "consent", use: [confirm("Show it?"), ...options.use], run: () => `run ${++runs}` }),
      ],
    });
    const toClient = (pin: string) =>
      join({
        onElicit: ({ message }) => {
          if (message === "Show it?") consents++;
          return { action: "accept", content: message === "Show it?" ? {} : { pin } };
        },
      });
    const [ada, bob] = [await toClient("1111"), await toClient("2222")];
    for (const name of ["direct", "service", "middleware"]) {
      assertEquals(textOf(await ada.callTool(name)), "for 1111", name);
      assertEquals(textOf(await bob.callTool(name)), "for 2222", name);
    }
    assertEquals([textOf(await ada.callTool("consent")), textOf(await bob.callTool("consent"))], ["run 1", "run 1"]);
    assertEquals(consents, 2);
  },
  { perInstance: "ready" },
);

Deno.test("a client whose calls neither fail nor succeed cannot take the test calls of other clients", async () => {
  const clock = fakeClock();
  let isBroken = true;
  const lookUp = tool({
    name: "look_up",
    input: z.object({ id: z.string() }),
    use: [circuit({ failures: 3, retryMs: 1000 })],
    run({ id }) {
      if (id === "bad") throw new ToolError("no such id");
      if (isBroken) throw new Error("down");
      return "found";
    },
  });
  await using server = createServer({
    name: "s",
    version: "1.0.0",
    clock,
    handlers: [lookUp],
    observer: { fault() {} },
  });
  const call = async (id: string, input: string) => {
    await using client = await connectTest(server, { principal: { id } });
    return textOf(await client.callTool("look_up", { id: input }));
  };
  for (const id of ["m1", "m2", "m3"]) await call(id, "x");
  isBroken = false;
  const answers: string[] = [];
  for (let round = 0; round < 5; round++) {
    await call("m4", "bad");
    answers.push(await call("ada", "x"), await call("bob", "x"));
    await clock.advance(1001);
  }
  // The first test call belonged to the client with the bad input, and the next one closed the circuit.
  assert(answers.slice(2).every((text) => text === "found"), answers.join());
});
