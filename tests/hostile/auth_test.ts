// Attempts to bypass authentication, to read credentials, or to use the sessions of another caller.
import { assert, assertEquals } from "@std/assert";
import { type Context, resource, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { serve } from "../peers/runtime.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { byKey, toSigned } from "../support/ways_in.ts";
import { connectRaw } from "./raw.ts";
import { start, toGet, toInitialize, toLegacy } from "./attack.ts";
import { compareCosts } from "../support/cost.ts";
import { testLimits } from "../support/limits.ts";
import { openServer } from "../support/servers.ts";

const ADA = "ada-2f6c1e0b9d4a7853";

Deno.test("a request with two Authorization headers is refused", async () => {
  await using server = start({
    auth: apiKey({ keys: { ada: ADA } }),
    handlers: [tool({ name: "t", run: () => "served" })],
  });
  await using port = serve({ fetch: server.fetch });
  const send = async (...keys: readonly string[]) => {
    const connection = await connectRaw(Number(port.host.split(":")[1]));
    const lines = ["GET /mcp HTTP/1.1", `Host: ${port.host}`, "Accept: text/event-stream", "Connection: close"];
    await connection.write([...lines, ...keys.map((key) => `Authorization: Bearer ${key}`), "", ""].join("\r\n"));
    const { status, body = "" } = await connection.read() ?? {};
    connection.close();
    assert(!body.includes(ADA));
    return status;
  };
  assertEquals(await send(ADA), 405);
  assertEquals(await send("wrong"), 401);
  for (const [first, second] of [[ADA, "wrong"], ["wrong", ADA], [ADA, ADA]]) {
    assertEquals(await send(first, second), 400);
  }
});

/** Yields all values that are reachable from a value, except through private fields. */
function* walk(value: unknown, seen = new Set<unknown>(), depth = 0): Generator<unknown> {
  if (depth > 6 || seen.has(value)) return;
  seen.add(value);
  yield value;
  if (value instanceof Headers) yield* [...value].flat();
  if (value instanceof Request) yield* [value.url, ...[...value.headers].flat()];
  if (typeof value !== "object" || value === null || value instanceof Request) return;
  for (let at: object | null = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const key of Reflect.ownKeys(at)) {
      if (key === INTERNALS) continue;
      let inner: unknown;
      try {
        inner = Reflect.get(at, key, value);
      } catch {
        continue;
      }
      yield* walk(inner, seen, depth + 1);
    }
  }
}

Deno.test("no credential is reachable from a context in a handler, a middleware or an `allow`", async () => {
  let looked = 0;
  const look = (ctx: Context) => {
    looked++;
    for (const value of walk(ctx)) assert(typeof value !== "string" || !value.includes(ADA), value as string);
    assertEquals(ctx.http?.headers.get("authorization"), null);
    assertEquals(ctx.http?.headers.get("cookie"), "theme=dark");
    assertEquals(new URL(ctx.http?.url ?? "").search, "?a=1");
    return true;
  };
  const faults: unknown[] = [];
  const server = openServer({
    auth: apiKey({ keys: { ada: ADA }, header: "X-Key", cookie: "sid", query: "key" }),
    handlers: [tool({ name: "t", allow: look, run: (_, ctx) => String(look(ctx)) })],
    use: [async (ctx, next) => {
      look(ctx);
      return await next();
    }],
    observer: { fault: ({ error }) => void faults.push(error) },
  });
  const places: readonly (readonly [Record<string, string>, string])[] = [
    [{ "x-key": ADA, cookie: "theme=dark", authorization: ADA }, "?a=1"],
    [{ cookie: `sid=${ADA}; theme=dark` }, "?a=1"],
    [{ cookie: "theme=dark" }, `?key=${ADA}&a=1`],
  ];
  for (const [headers, query] of places) {
    const modern = toRequest("tools/call", { name: "t" }, headers);
    const legacy = toLegacy({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "t" } }, headers);
    const begin = toLegacy(toInitialize(), headers);
    for (const request of [modern, legacy, begin]) {
      const response = await server.fetch(new Request(request.url + query, request));
      assertEquals(response.status, 200, await response.clone().text());
      await response.text();
    }
  }
  assertEquals([faults, looked], [[], 21]);
});

Deno.test("the server refuses a session, a requestState or a cursor that belongs to another caller", async () => {
  const notes = Array.from(
    { length: 5 },
    (_, i) => resource({ uri: `note://${i}`, name: `${i}`, allow: () => true, read: () => "" }),
  );
  const ask = tool({
    name: "ask",
    async run(_, ctx) {
      const schema = { type: "object", properties: { ok: { type: "boolean" } } } as const;
      return (await ctx.elicit("sure", { message: "Sure?", schema })).action;
    },
  });
  await using server = start({
    auth: byKey,
    handlers: [...notes, ask],
    limits: testLimits({ calls: { pageItems: 2 } }),
  });
  const send = async (name: "ada" | "bob", method: string, params: object) => {
    const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
    return await readReply(await server.fetch(toRequest(method, { ...params, _meta }, toSigned(name))));
  };
  const { result: { nextCursor } } = await send("ada", "resources/list", {});
  assertEquals((await send("bob", "resources/list", { cursor: nextCursor })).error.code, -32602);
  assertEquals((await send("ada", "resources/list", { cursor: nextCursor })).result.resources.length, 2);

  const { result: { requestState } } = await send("ada", "tools/call", { name: "ask" });
  const answered = { name: "ask", requestState, inputResponses: { sure: { action: "accept", content: { ok: true } } } };
  assert((await send("bob", "tools/call", answered)).result?.resultType !== "complete");
  assertEquals((await send("ada", "tools/call", answered)).result.resultType, "complete");

  const begun = await server.fetch(toLegacy(toInitialize(), toSigned("ada")));
  const session = begun.headers.get("mcp-session-id") ?? "";
  for (const name of ["ada", "bob"] as const) {
    const headers = { "mcp-session-id": session, ...toSigned(name) };
    const ping = await server.fetch(toLegacy({ jsonrpc: "2.0", id: 1, method: "ping" }, headers));
    const get = toGet(session);
    const stream = await server.fetch(
      new Request(get.url, { headers: { ...Object.fromEntries(get.headers), ...headers } }),
    );
    assertEquals([ping.status, stream.status], name === "ada" ? [200, 200] : [404, 404]);
    await stream.body?.cancel();
  }
});

Deno.test("checking a wrong key takes the same time whether its first or its last character is wrong", async () => {
  const server = start({ auth: apiKey({ keys: { ada: "a".repeat(3000) } }) });
  const send = (key: string) => async () =>
    await server.fetch(toRequest("ping", {}, { authorization: `Bearer ${key}` }));
  const runs = { far: send("b".repeat(3000)), near: send("a".repeat(2999) + "b") };
  const costs = await compareCosts(runs, ({ far, near }) => near < 3 * far + 0.2 && far < 3 * near + 0.2);
  assertEquals(costs, undefined);
});
