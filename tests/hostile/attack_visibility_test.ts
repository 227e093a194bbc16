// `allow` functions that do not return a boolean, and lists that differ between callers.
import { assert, assertEquals } from "@std/assert";
import { type Middleware, onlyMethods, resource, tool } from "../../mod.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { as, start, toCall, toListen } from "./attack.ts";
import { testLimits } from "../support/limits.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { turn, until } from "../support/behaviour.ts";
import { byKey, toSigned } from "../support/ways_in.ts";
import { openServer } from "../support/servers.ts";

/** A thenable that is not a promise, such as the query builder of a database library. */
const no = { then: (settle: (allowed: boolean) => void) => settle(false) } as unknown as Promise<boolean>;

Deno.test("an `allow` that returns a thenable is awaited", async () => {
  const server = start({ handlers: [tool({ name: "hidden", allow: () => no, run: () => "secret" })] });
  const text = await (await server.fetch(toCall("hidden"), as("eve"))).text();
  assert(!text.includes("secret"), text);
});

Deno.test("an `allow` that returns neither true nor false does not crash the process when a notification is sent", async () => {
  const read = () => "";
  const odd = resource({ uri: "test://odd", name: "odd", allow: () => "yes" as unknown as boolean, read });
  const server = start({ handlers: [odd] });
  const response = await server.fetch(toListen({ resourceSubscriptions: ["test://odd"] }));
  const errors: unknown[] = [];
  const { setTimeout: real } = globalThis;
  // Wrap `setTimeout`, because a test cannot catch an error that a timer callback throws.
  globalThis.setTimeout = ((job: () => void, ms?: number) =>
    real(() => {
      try {
        job();
      } catch (error) {
        errors.push(error);
      }
    }, ms)) as typeof setTimeout;
  try {
    server.resourceUpdated("test://odd");
    await new Promise((resolve) => real(resolve, 100));
  } finally {
    globalThis.setTimeout = real;
  }
  await response.body?.cancel();
  await server.close();
  assertEquals(errors, []);
});

Deno.test("a list is private to its caller if middleware could have removed entries", async () => {
  const server = start({
    handlers: [tool({ name: "hidden", run: () => "" })],
    use: [async ({ method, principal }, next) => {
      const result = await next();
      return method === "tools/list" && principal?.id !== "admin" ? { ...result, tools: [] } : result;
    }],
  });
  const { result } = await readReply(await server.fetch(toRequest("tools/list"), as("admin")));
  assertEquals(result.cacheScope, "private");
});

Deno.test("if a list differs between callers, a cursor is valid only for the caller who received the cursor", async () => {
  const handlers = [1, 2, 3].map((i) => tool({ name: `t${i}`, allow: () => true, run: () => "" }));
  const shown = [1, 2, 3].map((i) => tool({ name: `t${i}`, run: () => "" }));
  for (const [list, isPrivate] of [[handlers, true], [shown, false]] as const) {
    await using server = start({ handlers: list, limits: testLimits({ calls: { pageItems: 1 } }) });
    const ask = async (id: string, cursor?: string) =>
      await readReply(await server.fetch(toRequest("tools/list", cursor === undefined ? {} : { cursor }), as(id)));
    const { result: { nextCursor } } = await ask("ada");
    assertEquals((await ask("ada", nextCursor)).result.tools[0].name, "t2");
    const { result, error } = await ask("eve", nextCursor);
    assertEquals([result?.tools[0].name, error?.code], isPrivate ? [undefined, -32602] : ["t2", undefined]);
  }
});

Deno.test("a list request does not call middleware for other methods, and the list stays public", async () => {
  const seen: string[] = [];
  const note: Middleware = async ({ method }, next) => {
    seen.push(method);
    return await next();
  };
  const cases: readonly (readonly [use: readonly Middleware[], cacheScope: string])[] = [
    [[onlyMethods(["tools/call"], note)], "public"],
    [[onlyMethods(["tools/call"], note), onlyMethods(["tools/call", "prompts/list"], note)], "private"],
    [[onlyMethods(["tools/call"], note), note], "private"],
    [[onlyMethods(["tools/list"], note)], "private"],
  ];
  for (const [use, cacheScope] of cases) {
    await using server = start({ handlers: [tool({ name: "hi", run: () => "Hi" })], use });
    seen.length = 0;
    const listed = await readReply(await server.fetch(toRequest("tools/list")));
    assertEquals(listed.result.cacheScope, cacheScope);
    const sees = use.some((each) => each === note) || use.length === 1 && cacheScope === "private";
    assertEquals(seen, sees ? ["tools/list"] : []);
    // The list for an authenticated caller is private, because it may differ from other lists.
    const own = await readReply(await server.fetch(toRequest("tools/list"), as("admin")));
    assertEquals(own.result.cacheScope, "private");
  }
});

Deno.test("if middleware mutates a list, the list of the next caller does not change", async () => {
  const server = start({
    handlers: [tool({ name: "hidden", run: () => "" }), tool({ name: "shown", run: () => "" })],
    use: [async ({ method, principal }, next) => {
      const result = await next() as { tools: { readonly name: string }[] } & Record<string, unknown>;
      if (method === "tools/list" && principal?.id !== "admin") {
        result.tools = result.tools.filter(({ name }) => name !== "hidden");
      }
      return result;
    }],
  });
  await (await server.fetch(toRequest("tools/list"), as("admin"))).text();
  const text = await (await server.fetch(toRequest("tools/list"), as("eve"))).text();
  assert(!text.includes("hidden"), text);
});

// An authenticated caller attacks the sessions, calls and routes of another caller.

const ada = toSigned("ada");
const bob = toSigned("bob");
const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "c", version: "1" },
  },
};

const schema = { type: "object", properties: { a: { type: "string" } } } as const;
const ask = tool({
  name: "ask",
  run: async (_, ctx) => JSON.stringify(await ctx.elicit("q", { message: "?", schema })),
});

function startAsking() {
  const state = { aborted: 0, running: 0 };
  const hang = tool({
    name: "hang",
    async run(_, { signal }) {
      state.running++;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      state.aborted++;
      return "";
    },
  });
  const routes = [{ path: "/meta", fetch: () => new Response("META") }];
  const server = openServer({ auth: { ...byKey, routes }, handlers: [hang, ask] });
  const send = (message: unknown, headers: Record<string, string>, method = "POST") =>
    server.fetch(
      new Request("http://localhost/mcp", {
        method,
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
        body: method === "POST" ? JSON.stringify(message) : undefined,
      }),
    );
  const begin = async (headers: Record<string, string>) =>
    (await send(initialize, headers)).headers.get("mcp-session-id") ?? "";
  return { server, send, begin, state };
}

Deno.test("a caller cannot cancel, end, answer or resume the calls and sessions of another caller", async () => {
  const { send, begin, state } = startAsking();
  const hers = { "mcp-session-id": await begin(ada) };
  const his = { "mcp-session-id": await begin(bob) };
  const running = send({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "hang" } }, { ...ada, ...hers });
  await until(() => state.running === 1, "the call to run");
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } };
  assertEquals((await send(cancel, { ...bob, ...hers })).status, 404);
  assertEquals((await send(cancel, { ...bob, ...his })).status, 202);
  assertEquals((await send(undefined, { ...bob, ...hers }, "DELETE")).status, 404);
  // A handshake with the id of another caller's session opens a new session.
  const taken = await send(initialize, { ...bob, ...hers });
  assert(taken.headers.get("mcp-session-id") !== hers["mcp-session-id"]);
  await turn(10);
  assertEquals(state.aborted, 0);
  await send(cancel, { ...ada, ...hers });
  await (await running).text();

  const asking = await send({ jsonrpc: "2.0", id: 8, method: "tools/call", params: { name: "ask" } }, {
    ...ada,
    ...hers,
  });
  const reader = asking.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("elicitation/create")) text += (await reader?.read())?.value ?? "";
  const { id } = JSON.parse(/^data: (\{.*elicitation.*)$/m.exec(text)?.[1] ?? "");
  const answer = (a: string) => ({ jsonrpc: "2.0", id, result: { action: "accept", content: { a } } });
  assertEquals((await send(answer("the word of bob"), { ...bob, ...hers })).status, 404);
  await send(answer("the word of bob"), { ...bob, ...his });
  await send(answer("the word of ada"), { ...ada, ...hers });
  for (let read = await reader?.read(); !read?.done; read = await reader?.read()) text += read?.value;
  assert(text.includes("the word of ada") && !text.includes("the word of bob"), text);

  const last = /^id: (\S+)/m.exec(text)?.[1] ?? "";
  assert(last);
  const resume = { accept: "text/event-stream", "last-event-id": last };
  assertEquals((await send(undefined, { ...bob, ...his, ...resume }, "GET")).status, 400);
  assertEquals((await send(undefined, { ...bob, ...hers, ...resume }, "GET")).status, 404);
});

Deno.test("messages for another caller's HTTP+SSE stream are refused, and the id of a stream is not valid as a session id", async () => {
  const { server, send } = startAsking();
  const sse = httpSse(server);
  const opened = await sse.fetch(new Request("http://localhost/sse", { headers: ada }));
  const reader = opened?.body?.pipeThrough(new TextDecoderStream()).getReader();
  const [, path] = /data: (\S+)/.exec((await reader?.read())?.value ?? "") ?? [];
  const post = async (headers: Record<string, string>) =>
    (await sse.fetch(
      new Request(`http://localhost${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(initialize),
      }),
    ))?.status;
  assertEquals([await post(bob), await post({}), await post(ada)], [404, 401, 202]);
  const id = decodeURIComponent(/=([^&]+)/.exec(path)?.[1] ?? "");
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
  assertEquals((await send(ping, { ...ada, "mcp-session-id": id })).status, 404);
  await reader?.cancel();
});

Deno.test("no spelling of a path bypasses the authentication", async () => {
  const { server } = startAsking();
  const status = async (path: string, method = "GET") =>
    (await server.fetch(new Request(`http://localhost${path}`, { method }))).status;
  for (const path of ["/mcp", "/mcp?/meta", "/mcp#/meta", "/meta/../mcp"]) assertEquals(await status(path), 401, path);
  for (const path of ["/meta/", "//meta", "/META", "/%6deta", "/meta;x", "/mcp%2f..%2fmeta", "/mcp/"]) {
    assertEquals(await status(path), 404, path);
  }
  for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) assertEquals(await status("/meta", method), 200, method);
  for (const method of ["HEAD", "PATCH", "PUT", "PROPFIND"]) assertEquals(await status("/mcp", method), 401, method);
});

Deno.test("malformed credentials are refused, and the response does not contain the credentials", async () => {
  const { server } = startAsking();
  const { authorization } = ada;
  const key = authorization.slice("Bearer ".length);
  const odd: Readonly<Record<string, Record<string, string>>> = {
    empty: { authorization: "" },
    "scheme alone": { authorization: "Bearer" },
    "no scheme": { authorization: key },
    "another scheme": { authorization: `Basic ${btoa(`ada:${key}`)}` },
    tab: { authorization: `Bearer\t${key}` },
    "not ASCII": { authorization: `${authorization}\u00e9` },
    two: { authorization: `${authorization}, ${bob.authorization}` },
    "1 MB": { authorization: `Bearer ${"a".repeat(1_000_000)}` },
    proxy: { "proxy-authorization": authorization },
    cookie: { cookie: `authorization=${authorization}` },
    "a prefix": { authorization: authorization.slice(0, -1) },
    "a suffix": { authorization: `${authorization}0` },
  };
  for (const [name, headers] of Object.entries(odd)) {
    const response = await server.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body: "{}" }));
    assertEquals(response.status, name === "two" ? 400 : 401, name);
    const text = await response.text() + response.headers.get("www-authenticate");
    assert(!text.includes(key.slice(0, 12)) && text.length < 400, name);
  }
});
