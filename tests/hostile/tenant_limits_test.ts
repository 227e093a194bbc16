// Limits apply to a client that uses many paths, and rules that change continuously do not fill the memory.
import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, extension, type PathServerOptions, type Server, tool } from "../../mod.ts";
import { quota } from "../../src/layers/layers.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { turn, until } from "../support/behaviour.ts";
import { readAnswer, toReply, toRequest } from "../support/requests.ts";
import { openServer } from "../support/servers.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { any, soon, toSlowCall } from "./attack.ts";
import { serveOld } from "./sse.ts";
import { measureHeap } from "../support/heap.ts";
import { testLimits } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";

function open(options: Parameters<typeof quota>[0], run: () => Promise<string> | string = () => "done") {
  const work = tool({ name: "work", use: [quota(options)], run });
  const server = openServer({ path: "/:tenant/mcp", handlers: [work] });
  const call = async (tenant: string) => {
    const request = new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name: "work" }));
    const { result, error } = await readAnswer(await server.fetch(request));
    return result ? "done" : error?.code;
  };
  return { server, call };
}

Deno.test("all paths of a server share the rate limit of a client", async () => {
  const { call } = open({ rate: { calls: 2, perMs: 600_000 } });
  const codes = [];
  for (const tenant of ["a", "b", "c", "a"]) codes.push(await call(tenant));
  assertEquals(codes, ["done", "done", -31429, -31429]);
});

Deno.test("all paths of a server share the concurrency limit of a handler", async () => {
  const held = Promise.withResolvers<string>();
  const { call } = open({ concurrency: { calls: 1, waiting: 0 } }, () => held.promise);
  const first = call("a");
  const second = await call("b");
  held.resolve("done");
  assertEquals([await first, second], ["done", -31503]);
});

Deno.test("if rules replace each other, only the latest rules are applied to a new path", async () => {
  let applied = 0;
  const never = () => false;
  const selected = {
    get tag() {
      applied++;
      return "slow";
    },
  };
  const work = tool({ name: "work", tags: ["slow"], run: () => "done" });
  const server = openServer({ path: "/:tenant/mcp", handlers: [work] });
  for (let i = 0; i < 100; i++) {
    server.handlers.disable(selected);
    server.handlers.enable(work);
    server.handlers.disable({ tool: "work" }, never);
    server.handlers.enable(selected);
  }
  const count = async (tenant: string) => {
    const response = await server.fetch(new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/list")));
    return (await readAnswer(response)).result.tools.length;
  };
  assertEquals(await count("a"), 1);
  applied = 0;
  assertEquals(await count("b"), 1);
  assertEquals(applied < 10, true, `${applied} rules`);
});

Deno.test("a call that waits at one path does not count as waiting at another path", async () => {
  const gates: PromiseWithResolvers<string>[] = [];
  const work = tool({
    name: "work",
    run() {
      gates.push(Promise.withResolvers());
      return gates.at(-1)?.promise ?? "";
    },
  });
  const server = openServer({
    path: "/:tenant/mcp",
    handlers: [work],
    limits: { calls: { running: 1, runningPerClient: 1 }, perTenant: { running: 10 } },
  });
  const { accounts, scheduler } = server[INTERNALS].engine;
  const send = async (tenant: string, id: string) => {
    const request = new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name: "work" }));
    const response = await server.fetch(request, { principal: { id } });
    return (await readAnswer(response)).result.content[0].text;
  };
  const count = () =>
    ["/a/mcp", "/b/mcp"].map((tenant) => accounts.find("principal ada", tenant).amount(accounts.running));
  const calls = [send("a", "ada")];
  await until(() => gates.length === 1, "a call runs");
  calls.push(send("a", "bob"));
  await until(() => scheduler.waiting === 1, "a call waits for the process");
  calls.push(send("b", "ada"));
  await until(() => scheduler.waiting === 2, "a call waits for its client");
  gates[0].resolve("done");
  await until(() => gates.length === 2 && scheduler.waiting === 1, "the call of the client waits for the process");
  assertEquals(count(), [0, 1]);
  gates[1].resolve("done");
  await until(() => gates.length === 3, "the last call runs");
  gates[2].resolve("done");
  assertEquals(await Promise.all(calls), ["done", "done", "done"]);
  assertEquals([accounts.running.used, ...count()], [0, 0, 0]);
});

// Clients that use many paths of a server, or paths whose handlers are created slowly, fail or do not exist.

const quick = tool({ name: "quick", input: any, run: () => "" });

function startTenants(options: Partial<PathServerOptions> = {}): Server {
  return openServer({ path: "/:tenant/mcp", handlers: [quick], observer: { fault() {} }, ...options });
}

function call(server: Server, tenant: string, given = {}, id = "eve"): Promise<Response> {
  const request = toRequest("tools/call", { name: "quick", arguments: given });
  return server.fetch(new Request(`http://localhost/${tenant}/mcp`, request), { principal: { id } });
}

async function toStatus(answer: Promise<Response>): Promise<number> {
  const response = await answer;
  await response.text();
  return response.status;
}

Deno.test("large requests to many paths are queued like requests to one path", async () => {
  const server = startTenants();
  const tenants = Array.from({ length: 16 }, (_, i) => `t${i}`);
  for (const tenant of tenants) await toStatus(call(server, tenant));
  const list = Array.from({ length: 20_000 }, () => ({}));
  let turns = 0;
  let isOver = false;
  const count = async () => {
    for (; !isOver; turns++) await turn();
  };
  const counting = count();
  await Promise.all(tenants.map((tenant) => toStatus(call(server, tenant, { list }))));
  isOver = true;
  await counting;
  assert(turns >= tenants.length, `${tenants.length} large requests were served in ${turns} turns of the event loop`);
});

Deno.test("requests that wait for the handlers of one path are charged to their client, and then refused", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using server = startTenants({
    handlers: async () => {
      await promise;
      return [quick];
    },
    limits: { memory: { bytesPerClient: 1_000_000 } },
  });
  const refused: number[] = [];
  let open = 0;
  const send = async (id: string) => {
    open++;
    const status = await toStatus(call(server, "slow", {}, id));
    open--;
    if (status !== 200) refused.push(status);
  };
  const sending = Array.from({ length: 200 }, () => send("eve"));
  await until(() => refused.length > 130, "requests are refused");
  assertEquals([...new Set(refused)], [503]);
  assert(open > 40 && open < 62, `${open} requests wait`);
  const before = refused.length;
  sending.push(send("ada"));
  resolve();
  await Promise.all(sending);
  assertEquals(refused.length, before);
  const { accounts } = server[INTERNALS].engine;
  await until(() => accounts.memory.used === 0, "everything is released");
});

Deno.test("all paths share the limit on arriving bytes", async () => {
  const server = startTenants({ limits: testLimits({ request: { allBodiesBytes: 400_000 } }) });
  const slow = Array.from({ length: 8 }, () => toSlowCall("quick"));
  const answers = slow.map(({ request, write }, i) => {
    write(120_000);
    return server.fetch(new Request(`http://localhost/t${i}/mcp`, request), { principal: { id: `p${i}` } });
  });
  const { accounts } = server[INTERNALS].engine;
  const toArriving = () => accounts.pots.get("request.allBodiesBytes")?.used ?? 0;
  await until(() => toArriving() > 200_000, "bodies arrive");
  await turn(10);
  const held = toArriving();
  for (const { abort } of slow) abort();
  await Promise.all(answers.map(toStatus));
  assertEquals(accounts.memory.used, 0);
  assert(held <= 520_000, `${held} bytes are held`);
});

Deno.test("requests to paths that do not exist do not evict existing paths", async () => {
  const made: string[] = [];
  const handlers = ({ tenant }: Readonly<Record<string, string>>) => {
    made.push(tenant);
    return tenant.startsWith("no") ? undefined : [quick];
  };
  await using server = startTenants({ handlers, limits: testLimits({ endpoints: { open: 2 } }) });
  for (const tenant of ["a", "b"]) assertEquals(await toStatus(call(server, tenant)), 200);
  const unknown = Array.from({ length: 50 }, (_, i) => toStatus(call(server, `no${i}`)));
  for (const status of await Promise.all(unknown)) assert(status === 404 || status === 503, `${status}`);
  made.length = 0;
  for (const tenant of ["a", "b"]) assertEquals(await toStatus(call(server, tenant)), 200);
  assertEquals(made, []);
});

Deno.test("the number of paths in memory never exceeds the limit, however many paths are created concurrently", async () => {
  const pass = Promise.withResolvers<void>();
  const made = new Set<string>();
  const handlers = async ({ tenant }: Readonly<Record<string, string>>) => {
    made.add(tenant);
    await pass.promise;
    return [quick];
  };
  await using server = startTenants({ handlers, limits: testLimits({ endpoints: { open: 3 } }) });
  const answers = Array.from({ length: 30 }, (_, i) => toStatus(call(server, `t${i}`, {}, `p${i}`)));
  await until(() => made.size > 0, "handlers are made");
  await turn(10);
  assert(made.size <= 6, `handlers of ${made.size} paths are being made`);
  pass.resolve();
  const statuses = await Promise.all(answers);
  assertEquals(statuses.filter((status) => status === 200).length >= 3, true, statuses.join());
  for (const status of statuses) assert(status === 200 || status === 503, `${status}`);
  made.clear();
  for (let i = 0; i < 6; i++) await toStatus(call(server, `t${i}`));
  assert(made.size >= 3, "paths above the limit were kept");
});

Deno.test("if the creation of a path's handlers never settles, requests to the path time out, and the path is evicted", async () => {
  const faults: string[] = [];
  let stuck = true;
  await using server = startTenants({
    handlers: () => stuck ? new Promise(() => {}) : [quick],
    limits: testLimits({ auth: { timeoutMs: 100 }, endpoints: { open: 4 } }),
    observer: { fault: ({ error }) => faults.push(String(error)) },
  });
  const answers = ["a", "a", "b", "c"].map((tenant) => call(server, tenant, {}, tenant));
  for (const answer of answers) {
    const response = await soon(answer);
    assertEquals([response?.status, response?.headers.get("retry-after")], [503, "1"]);
    assertMatch(await response?.text() ?? "", /auth\.timeoutMs/);
  }
  // The observer gets the error once for each path.
  assertEquals(faults, Array(3).fill(sentence("/:tenant/mcp", 100)));
  stuck = false;
  assertEquals(await toStatus(call(server, "a")), 200);
});

Deno.test("if the creation of handlers fails or times out, the next request creates the handlers again, and late handlers are dropped", async () => {
  let runs = 0;
  const late = Promise.withResolvers<[typeof quick]>();
  const handlers = () => {
    runs++;
    if (runs === 1) throw new Error("on purpose");
    return runs === 2 ? late.promise : [quick];
  };
  await using server = startTenants({ handlers, limits: testLimits({ auth: { timeoutMs: 100 } }) });
  assertEquals(await toStatus(call(server, "a")), 500);
  assertEquals(await toStatus(call(server, "a")), 503);
  assertEquals(await toStatus(call(server, "a")), 200);
  late.resolve([quick]);
  await turn(10);
  assertEquals(await toStatus(call(server, "a")), 200);
  assertEquals(runs, 3);
});

Deno.test("a path is not evicted between the request for a stream and the opening of the stream", async () => {
  const made: string[] = [];
  const handlers = ({ tenant }: Readonly<Record<string, string>>) => (made.push(tenant), [quick]);
  await using server = startTenants({ handlers, limits: testLimits({ endpoints: { open: 1 } }) });
  const { open } = serveOld(server, { path: "/:tenant/sse", messages: "/:tenant/messages" });
  for (let i = 0; i < 30; i++) {
    made.length = 0;
    const opening = open("/held/sse");
    // Wait one more microtask in each attempt, so that the second request arrives at every possible moment.
    for (let turns = 0; turns < i; turns++) await undefined;
    const other = call(server, "other");
    const stream = await opening;
    await toStatus(other);
    const before = made.filter((tenant) => tenant === "held").length;
    await toStatus(call(server, "held"));
    const after = made.filter((tenant) => tenant === "held").length;
    if (stream.response.status === 200) assertEquals(after, before, `the path was dropped (${i})`);
    await stream.leave();
    await until(() => server[INTERNALS].engine.accounts.streams.used === 0, "the stream is gone");
  }
});

Deno.test("after enter(), a path is kept until a channel has opened, or for a short time if no channel opens", async () => {
  const made: string[] = [];
  const handlers = ({ tenant }: Readonly<Record<string, string>>) => (made.push(tenant), [quick]);
  await using server = startTenants({ handlers, limits: testLimits({ endpoints: { open: 1 } }) });
  const { enter } = server[INTERNALS];
  const entered = await enter?.({ tenant: "held" });
  assertEquals(await toStatus(call(server, "other")), 503);
  assert(entered);
  openPipe(entered, { write: () => undefined }).close();
  assertEquals(await toStatus(call(server, "other")), 200);
  await enter?.({ tenant: "held" });
  await until(async () => await toStatus(call(server, "other")) === 200, "the path is released");
});

Deno.test("the server releases the memory of evicted paths", async () => {
  const bytes = await measureHeap(new URL("evicted_paths_memory.ts", import.meta.url));
  assert(bytes < 130, `each evicted path leaves ${bytes} bytes`);
});

// Using many other paths must not end the work at a path.

function callTool(server: Server, tenant: string, name: string): Promise<Response> {
  return server.fetch(new Request(`http://localhost/${tenant}/mcp`, toRequest("tools/call", { name })));
}

Deno.test("a path is not evicted while a handler continues after its response", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const own = extension({ id: "com.example/later" });
  const later = own.layer({
    around(call, next) {
      call.detach();
      next();
      return { content: [] };
    },
  });
  const made: string[] = [];
  const work = tool({
    name: "work",
    use: [later],
    async run() {
      await promise;
      return "done";
    },
  });
  const ping = tool({ name: "ping", run: () => "pong" });
  const server = openServer({
    path: "/:tenant/mcp",
    limits: testLimits({ endpoints: { open: 2 } }),
    handlers: ({ tenant }) => {
      made.push(tenant);
      return [own, work, ping];
    },
  });
  await (await callTool(server, "busy", "work")).text();
  for (const tenant of ["a", "b", "c", "busy"]) await (await callTool(server, tenant, "ping")).text();
  resolve();
  await turn(10);
  await server.close();
  assertEquals(made, ["busy", "a", "b", "c"]);
});

Deno.test("handlers that were disabled or removed at a path stay disabled or removed, however many other paths are used", async () => {
  const secret = tool({ name: "secret", run: () => "the secret" });
  const ping = tool({ name: "ping", run: () => "pong" });
  const changes = {
    disable: tool({ name: "disable", run: (_, { server: { handlers } }) => handlers.disable({ tool: "secret" }) }),
    remove: tool({
      name: "remove",
      run: (_, { server: { handlers } }) => handlers.remove(handlers.get("tool", "secret")),
    }),
  };
  for (const [name, change] of Object.entries(changes)) {
    const server = openServer({
      path: "/:tenant/mcp",
      limits: testLimits({ endpoints: { open: 2 } }),
      handlers: () => [secret, ping, change],
    });
    const run = async (tenant: string, name: string) => await (await callTool(server, tenant, name)).text();
    const toError = (body: string) => JSON.parse(toReply(body)).error.message;
    await run("shut", name);
    for (const tenant of ["a", "b", "c", "d"]) assertStringIncludes(await run(tenant, "ping"), "pong");
    assertEquals(toError(await run("shut", "secret")), sentence("secret"), name);
    assertStringIncludes(await run("a", "secret"), "the secret");
    // Rules of the whole server apply at all paths, and do not keep any path in memory.
    server.handlers.disable({ tool: "ping" });
    for (const tenant of ["shut", "a", "b"]) assertEquals(toError(await run(tenant, "ping")), sentence("ping"));
    server.handlers.enable({ tool: "ping" });
    for (const tenant of ["c", "d", "e"]) assertStringIncludes(await run(tenant, "ping"), "pong");
  }
});

Deno.test("createServer() throws if a path parameter has the name of an inherited object property", () => {
  const options = { name: "tenants", version: "1.0.0" };
  assertThrows(() => createServer({ ...options, path: "/:__proto__/mcp" }), TypeError, sentence("/:__proto__/mcp"));
  createServer({ ...options, path: "/:constructor/mcp" });
});
