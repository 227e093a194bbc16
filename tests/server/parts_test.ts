// The parts of a server that start with it: extensions, layers, authentications, routes, providers and services. All of
// them get the same handle, and start, fail, restart and stop in the same way.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import {
  createServer,
  extension,
  group,
  type Handler,
  mount,
  prompt,
  promptProvider,
  resourceProvider,
  type Server,
  type ServerOptions,
  service,
  tool,
  toolProvider,
} from "../../mod.ts";
import type { ServerHandle, StartPart } from "../../src/extensions/extension.ts";
import { layer, type UseItem } from "../../src/layers/layers.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { closeAtEnd } from "../support/running.ts";
import { advanceUntil, behaviour, gate, type Told, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const about = { name: "parts", version: "1.0.0" };
const secret = "a secret of at least thirty-two characters";

/** Uses a part of a server. Returns whether the part has answered. */
type Use = (server: Server) => Promise<boolean>;

/** A kind of part, with a server that has such a part, and a use of the part. */
interface Kind {
  readonly kind: string;
  readonly make: (start: StartPart) => Partial<ServerOptions>;
  readonly use: Use;
}

const call = (name: string, path?: string): Use => async (server) => {
  await using client = await connectTest(server, { transport: "http", path });
  try {
    return (await client.callTool(name)).isError !== true;
  } catch {
    return false;
  }
};

const visit = (path: string): Use => async (server) => (await server.fetch(new Request(`http://localhost${path}`))).ok;

const ID = "com.example/part";
const AUTH = { extensions: { [ID]: {} } };

const KINDS: readonly Kind[] = [
  {
    kind: `extension "${ID}"`,
    make: (start) => ({ handlers: [extension({ id: ID, start, methods: { "part/use": { run: () => ({}) } } })] }),
    use: async (server) => {
      await using client = await connectTest(server, { transport: "http", capabilities: AUTH });
      return await client.request("part/use", {}).then(() => true, () => false);
    },
  },
  {
    kind: 'layer "part" 1 of tool "use"',
    make: (start) => ({
      handlers: [tool({
        name: "use",
        use: [layer(() => ({
          name: "part",
          // The state of a layer is disposed instead of a function that `start` returns.
          start: async (server) => ({ [Symbol.dispose]: await start(server) ?? (() => {}) }),
          inside: (_ctx, next) => next(),
          onInput: () => undefined,
        }))],
        run: () => "used",
      })],
    }),
    use: call("use"),
  },
  {
    kind: "the authentication",
    make: (start) => ({
      auth: { start, authenticate: () => ({ id: "ada" }) },
      handlers: [tool({ name: "use", run: () => "used" })],
    }),
    use: (server) => call("use")(server).catch(() => false),
  },
  {
    kind: 'route "/part"',
    make: (start) => ({ routes: [{ path: "/part", start, fetch: () => new Response("used") }] }),
    use: visit("/part"),
  },
  {
    kind: 'resource provider "parts" of part:',
    make: (start) => ({ handlers: [resourceProvider({ scheme: "part", name: "parts", start, read: () => "used" })] }),
    use: async (server) => {
      await using client = await connectTest(server, { transport: "http" });
      return await client.readResource("part://1").then(() => true, () => false);
    },
  },
  {
    kind: 'tool provider "parts"',
    make: (start) => {
      const found = tool({ name: "use", run: () => "used" });
      return { handlers: [toolProvider({ name: "parts", start, find: (name) => name === "use" ? found : undefined })] };
    },
    use: call("use"),
  },
  {
    kind: 'prompt provider "parts"',
    make: (start) => ({
      handlers: [promptProvider({ name: "parts", start, find: (name) => prompt({ name, run: () => "used" }) })],
    }),
    use: async (server) => {
      await using client = await connectTest(server, { transport: "http" });
      return await client.getPrompt("use").then(() => true, () => false);
    },
  },
  {
    kind: 'service "part"',
    make: (start) => {
      const part = service("part", async ({ getServer }) => ({ stop: await start(await getServer()) }), {
        dispose: ({ stop }) => stop?.(),
      });
      return { handlers: [tool({ name: "use", services: { part }, run: () => "used" })] };
    },
    use: call("use"),
  },
];

/** Creates a server with a part of a kind, and collects its faults. */
function serve({ make }: Kind, start: StartPart, more: Partial<ServerOptions> = {}) {
  const faults: Told[] = [];
  const observer = { fault: (fault: Told) => void faults.push(fault) };
  return { server: closeAtEnd(createServer({ ...about, observer, ...make(start), ...more })), faults };
}

for (const kind of KINDS) {
  Deno.test(`a part starts once with its server, and stops before the store closes: ${kind.kind}`, async () => {
    for (const isReady of [true, false]) {
      const handles: ServerHandle[] = [];
      const steps: string[] = [];
      const { server, faults } = serve(kind, (server) => {
        handles.push(server);
        server.signal.addEventListener("abort", () => steps.push("aborted"));
        return async () => {
          await server.store?.own.set("last", "kept", { ttlMs: 60_000 });
          steps.push(String((await server.store?.own.get("last"))?.value));
        };
      }, { store: memoryStore(), secret });
      if (isReady) await server.ready();
      assertEquals(await kind.use(server), true);
      assertEquals(await kind.use(server), true);
      const [handle] = handles;
      assertEquals(handles.length, 1);
      assertEquals(await handle.open(await handle.seal({ a: 1 })), { a: 1 });
      assert(Math.abs(handle.clock.date() - Date.now()) < 60_000);
      const key = {};
      assertEquals(handle.slot(key, () => [1]), handle.slot(key, () => [2]));
      let changes = 0;
      const stop = handle.handlers.watch(() => changes++);
      server.handlers.add(tool({ name: "later", run: () => "" }));
      await until(() => changes === 1, "the notification of the change");
      assertEquals(handle.handlers.has("tool", "later"), true);
      stop();
      server.handlers.add(tool({ name: "last", run: () => "" }));
      await turn();
      assertEquals(changes, 1);
      await server.close();
      assertEquals(steps, ["aborted", "kept"]);
      assertEquals(faults, []);
    }
  });

  Deno.test(`a failed start fails the use of a part, and the next use starts the part again: ${kind.kind}`, async () => {
    // All values of a service share one handle, which has no start that fails.
    const isService = kind.kind.startsWith("service");
    let isBroken = true;
    let starts = 0;
    let changes = 0;
    const signals: AbortSignal[] = [];
    const { server, faults } = serve(kind, ({ handlers, signal }) => {
      signals.push(signal);
      handlers.watch(() => changes++);
      if (isBroken) throw new Error("not yet");
      starts++;
    });
    await assertRejects(() => server.ready());
    assertEquals(await kind.use(server), false);
    assert(faults.length > 0);
    assertEquals(new Set(faults.map(({ error }) => Object(error).message)), new Set(["not yet"]));
    isBroken = false;
    assertEquals(await kind.use(server), true);
    assertEquals(starts, 1);
    // What a failed start has begun does not continue.
    if (!isService) {
      assertEquals(signals.map(({ aborted }) => aborted), signals.map((_, at) => at < signals.length - 1));
      server.handlers.add(tool({ name: "later", run: () => "" }));
      await until(() => changes > 0, "the notification of the change");
      assertEquals(changes, 1);
    }
  });

  Deno.test(`a start that hangs fails the use of a part in time, and the server closes: ${kind.kind}`, async () => {
    const clock = fakeClock();
    const { pass, open } = gate();
    const { server, faults } = serve(kind, () => pass, { clock, limits: { calls: { closeMs: 100 } } });
    const using = kind.use(server);
    assertEquals(await advanceUntil(clock, 10_000, using), false);
    open();
    await until(() => kind.use(server), "the part has started");
    assert(faults.length <= 1, "a fault for each wait");
    await advanceUntil(clock, 1000, server.close());
  });

  Deno.test(`a start that returns no function fails the use of a part: ${kind.kind}`, async () => {
    // The value of a service, and of a layer, can have any type.
    if (/service|layer/.test(kind.kind)) return;
    for (const wrong of [1, null, "", {}, [], true]) {
      // The cast is safe, because the test passes wrong values on purpose.
      const { server, faults } = serve(kind, () => wrong as never);
      await assertRejects(() => server.ready(), TypeError, sentence(kind.kind, "function"));
      assertEquals(await kind.use(server), false);
      assert(faults.length > 0);
    }
  });
}

Deno.test("parts have separate keys and sealed values, and share slots", async () => {
  const handles = new Map<string, ServerHandle>();
  const made = KINDS.map(({ kind, make }) => make((server) => void handles.set(kind, server)));
  const handlers = made.flatMap(({ handlers }) => handlers as readonly Handler[] ?? []);
  const unique = handlers.filter(({ name }, at) =>
    name !== "use" || handlers.findIndex((each) => each.name === "use") === at
  );
  const others = handlers.filter((each) => !unique.includes(each));
  const { auth } = made[2];
  const store = memoryStore();
  await using server = createServer({ ...about, auth, handlers: unique, routes: made[3].routes, store, secret });
  await server.ready();
  assert(others.length > 0);
  const all = [...handles.values()];
  assertEquals(all.length, 7);
  const key = {};
  for (const [at, handle] of all.entries()) {
    const sealed = await handle.seal({ at });
    await handle.store?.own.set("key", `${at}`, { ttlMs: 60_000 });
    assertEquals(
      await Promise.all(all.map((each) => each.open(sealed))),
      all.map((_, i) => i === at ? { at } : undefined),
    );
    assertEquals(handle.slot(key, () => ({ at })), { at: 0 });
  }
  assertEquals(
    await Promise.all(all.map(async (each) => (await each.store?.own.get("key"))?.value)),
    all.map((_, at) => `${at}`),
  );
});

behaviour("a provider announces changes, and keeps state per server", async (connect) => {
  const notes = new WeakMap<ServerHandle, string[]>();
  const handles: ServerHandle[] = [];
  const provider = resourceProvider({
    scheme: "note",
    name: "notes",
    start(server) {
      handles.push(server);
      notes.set(server, ["milk"]);
    },
    list: (_cursor, _ctx, server) => ({
      resources: ((server && notes.get(server)) ?? []).map((name) => ({ uri: `note://${name}`, name })),
    }),
    read: (uri, _ctx, server) => (server && notes.get(server))?.find((name) => uri === `note://${name}`),
  });
  await using other = createServer({ ...about, handlers: [provider] });
  const { client } = await connect({ handlers: [provider] });
  await using foreign = await connectTest(other);
  const list = async (from: typeof client) => (await from.listResources()).map(({ name }) => name);
  assertEquals([await list(client), await list(foreign)], [["milk"], ["milk"]]);
  assertEquals(handles.length, 2);
  const subscription = await client.subscribe({ resourcesListChanged: true, resourceSubscriptions: ["note://bread"] });
  notes.get(handles[0])?.push("bread");
  handles[0].listChanged("resources");
  handles[0].resourceUpdated("note://bread");
  const methods = () => subscription.received.map(({ method }) => method).toSorted();
  await until(() => methods().length === 2, "the notifications");
  assertEquals(methods(), ["notifications/resources/list_changed", "notifications/resources/updated"]);
  assertEquals([await list(client), await list(foreign)], [["milk", "bread"], ["milk"]]);
  const { contents: [read] } = await client.readResource("note://bread");
  assertEquals(Object(read).text, "bread");
  await assertRejects(() => foreign.readResource("note://bread"));
}, { perInstance: "hooks" });

behaviour("a service uses the handle of its server", async (connect) => {
  const totals = service("totals", async ({ getServer }) => {
    const { resourceUpdated, clock, signal, seal, open } = await getServer();
    return { resourceUpdated, clock, signal, seal, open };
  });
  const perCall = service("per call", async ({ getServer, ctx }) => [await getServer(), ctx.method] as const, {
    per: "call",
  });
  const again = service("keyed", async ({ getServer, key }) => [await getServer(), key] as const, { per: () => "one" });
  const show = tool({
    name: "show",
    services: { totals, perCall, again },
    input: z.object({ text: z.string() }),
    run: async ({ text }, { services: { totals, perCall, again } }) => {
      const handles = new Set([perCall[0], again[0]]);
      totals.resourceUpdated("note://1");
      return [await totals.open(await totals.seal(text)), perCall[1], again[1], handles.size, totals.signal.aborted];
    },
  });
  const { client } = await connect({ handlers: [show] });
  const { content: [first] } = await client.callTool("show", { text: "a" });
  assertEquals(JSON.parse(Object(first).text), ["a", "tools/call", "one", 2, false]);
});

Deno.test("two services with one name cannot share the handle of a server", async () => {
  const make = () => service("twin", async ({ getServer }) => await getServer());
  const [one, two] = [make(), make()];
  const use = (name: string, twin: typeof one) => tool({ name, services: { twin }, run: () => "used" });
  const faults: Told[] = [];
  const observer = { fault: (fault: Told) => void faults.push(fault) };
  await using server = createServer({ ...about, observer, handlers: [use("one", one), use("two", two)] });
  await assertRejects(() => server.ready(), TypeError, sentence("twin", "another"));
  assertEquals(await call("one")(server), true);
  assertEquals(await call("two")(server), false);
  // The same name in different servers is right, and so is a service without the handle.
  const plain = service("twin", () => 1);
  await using other = createServer({
    ...about,
    handlers: [use("one", one), tool({ name: "plain", services: { plain }, run: () => "used" })],
  });
  await other.ready();
});

Deno.test("a service cannot get the handle of the server after its value has ended, or after the server has closed", async () => {
  const late: Record<string, () => Promise<ServerHandle>> = {};
  const held = service("held", ({ getServer }) => late.held = getServer, { per: "call" });
  const wide = service("wide", ({ getServer }) => late.wide = getServer);
  const use = tool({ name: "use", services: { held, wide }, run: () => "used" });
  const server = createServer({ ...about, handlers: [use] });
  assertEquals(await call("use")(server), true);
  await assertRejects(late.held, Error, sentence("held", "ended"));
  assertEquals((await late.wide()).signal.aborted, false);
  await server.close();
  await assertRejects(late.wide, Error, sentence("wide", "ended"));
});

Deno.test("a service without the handle is created without a promise, and starts no part", async () => {
  let value = "";
  const plain = service("plain", () => {
    value = "made";
    return value;
  });
  const look = tool({ name: "look", services: { plain }, run: (_, { services: { plain } }) => plain });
  await using server = createServer({ ...about, handlers: [look] });
  await using client = await connectTest(server);
  await client.callTool("look");
  assertEquals(value, "made");
});

Deno.test("services of mounted servers get the handle of the first server, and are disposed before its store closes", async () => {
  const handles: ServerHandle[] = [];
  const steps: unknown[] = [];
  const shared = service("shared", async ({ getServer }) => {
    const server = await getServer();
    handles.push(server);
    server.signal.addEventListener("abort", () => steps.push("aborted"));
    return server;
  }, {
    async dispose({ store }) {
      await store?.own.set("last", "kept", { ttlMs: 60_000 });
      steps.push((await store?.own.get("last"))?.value);
    },
  });
  const use = tool({
    name: "use",
    services: { shared },
    run: async (_, ctx) => {
      await ctx.services.shared.store?.by(ctx).set("by", "ada", { ttlMs: 60_000 });
      return (await ctx.services.shared.store?.by(ctx).get("by"))?.value;
    },
  });
  const stores = [memoryStore(), undefined];
  const [first, second] = ["one", "two"].map((name, at) =>
    createServer({ ...about, name, path: `/${name}/mcp`, handlers: [use], store: stores[at], secret })
  );
  const routes = [{
    path: "/part",
    start: (server: ServerHandle) => {
      handles.push(server);
      return async () => void steps.push((await server.store?.own.get("none"))?.value ?? "route stopped");
    },
    fetch: () => new Response("used"),
  }];
  const mounted = mount([first, second], { routes });
  await mounted.ready();
  for (const path of ["/one/mcp", "/two/mcp"]) assertEquals(await call("use", path)(mounted), true);
  assertEquals(await visit("/part")(mounted), true);
  assertEquals(handles.length, 2);
  for (const { handlers } of handles) assertEquals(handlers.has("tool", "use"), true);
  // A mounted server that closes alone does not dispose what the others use.
  await second.close();
  assertEquals(await call("use", "/one/mcp")(mounted), true);
  assertEquals(steps, []);
  await mounted.close();
  assertEquals(steps.toSorted(), ["aborted", "kept", "route stopped"]);
});

Deno.test("of a path with parameters, services and routes start once, and providers once for each concrete path", async () => {
  const starts: string[] = [];
  const note = (name: string) => (server: ServerHandle) => {
    starts.push(name);
    server.signal.addEventListener("abort", () => starts.push(`${name} aborted`));
  };
  const shared = service("shared", async ({ getServer }) => note("service")(await getServer()));
  const read = (_uri: string, _ctx: unknown, server: ServerHandle | undefined) => String(server !== undefined);
  await using server = createServer({
    ...about,
    path: "/tenants/:tenant/mcp",
    handlers: () => [
      tool({ name: "use", services: { shared }, run: () => "used" }),
      resourceProvider({ scheme: "part", name: "parts", start: note("provider"), read }),
    ],
    routes: [{ path: "/part", start: note("route"), fetch: () => new Response("used") }],
  });
  for (const tenant of ["a", "b"]) {
    await using client = await connectTest(server, { transport: "http", pathParams: { tenant } });
    assertEquals((await client.callTool("use")).isError ?? false, false);
    const { contents: [read] } = await client.readResource("part://1");
    assertEquals(Object(read).text, "true");
  }
  assertEquals(starts.toSorted(), ["provider", "provider", "route", "service"]);
  await server.close();
  assertEquals(starts.filter((each) => each.endsWith("aborted")).length, 4);
});

Deno.test("a provider that is removed stops, and one in a group starts", async () => {
  const steps: string[] = [];
  const provider = resourceProvider({
    scheme: "part",
    name: "parts",
    start: () => {
      steps.push("start");
      return () => steps.push("stop");
    },
    read: () => "used",
  });
  await using server = createServer({ ...about, handlers: [provider] });
  await server.ready();
  server.handlers.remove(provider);
  await until(() => steps.length === 2, "the provider has stopped");
  const use: UseItem[] = [layer(() => ({ name: "pass", inside: (_ctx, next) => next() }))];
  server.handlers.add(group("parts", [provider], { use }));
  await server.ready();
  assertEquals(steps, ["start", "stop", "start"]);
  await server.close();
  assertEquals(steps, ["start", "stop", "start", "stop"]);
});

Deno.test("parts stop when stdio ends, and start again with the next input", async () => {
  const steps: string[] = [];
  const note = (name: string): StartPart => (server) => {
    steps.push(name);
    server.signal.addEventListener("abort", () => steps.push(`${name} aborted`));
    return () => void steps.push(`${name} stopped`);
  };
  const held = service("held", async ({ getServer }) => ({ stop: await note("service")(await getServer()) }), {
    dispose: ({ stop }) => stop?.(),
  });
  const use = tool({ name: "use", services: { held }, run: () => "used" });
  const provider = resourceProvider({ scheme: "part", name: "parts", start: note("provider"), read: () => "used" });
  await using server = createServer({ ...about, handlers: [use, provider] });
  const message = { jsonrpc: "2.0", id: 1, method: "initialize", params: {} };
  for (let at = 1; at <= 2; at++) {
    const input = new Blob([`${JSON.stringify(message)}\n`]).stream();
    await serveStdio(server, { input, output: async () => {}, exit: false });
    assertEquals(steps.length, 6 * at, steps.join());
  }
  assertEquals(steps.slice(0, 6).toSorted(), steps.slice(6).toSorted());
});

Deno.test("a route whose start takes too long gets status 503, and 503 while the server has closed", async () => {
  const clock = fakeClock();
  const { pass, open } = gate();
  const faults: Told[] = [];
  const server = createServer({
    ...about,
    clock,
    observer: { fault: (fault) => void faults.push(fault) },
    routes: [{ path: "/part", start: () => pass, fetch: () => new Response("used") }],
  });
  const ask = async () => {
    const response = await server.fetch(new Request("http://localhost/part"));
    return [response.status, await response.text()];
  };
  assertEquals(await advanceUntil(clock, 10_000, ask()), [503, sentence("start")]);
  assertEquals(faults.map(({ error }) => Object(error).message), [sentence("/part", "took longer")]);
  open();
  await until(async () => (await ask())[0] === 200, "the route has started");
  await server.close();
  assertEquals(await ask(), [503, sentence("closing")]);
  assertEquals(faults.length, 1);
});

Deno.test("the error of an asynchronous function that watches the handlers is reported, and ends no process", async () => {
  const faults: unknown[] = [];
  const watching = toolProvider({
    find: () => undefined,
    start: ({ handlers }) => {
      handlers.watch(async () => {
        await Promise.resolve();
        throw new Error("the watcher failed");
      });
    },
  });
  await using server = createServer({
    ...about,
    handlers: [watching],
    observer: { fault: ({ error }) => faults.push(error) },
  });
  await server.ready();
  server.handlers.add(tool({ name: "later", run: () => "" }));
  await until(() => faults.length === 1, "the error is reported");
  assertEquals(String(faults[0]), "Error: the watcher failed");
});
