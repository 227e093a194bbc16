// Attacks on the sessions of legacy revisions.
import { assert, assertEquals, assertMatch, assertNotMatch } from "@std/assert";
import { tool } from "../../mod.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { until } from "../support/behaviour.ts";
import {
  type Case,
  cases,
  type Fixture,
  initialize,
  LEGACY,
  readError,
  startFixture,
  toBytes,
  toMessage,
} from "./http.ts";
import { testLimits } from "../support/limits.ts";
import { openServer } from "../support/servers.ts";

const invalid = { status: 400, code: -32600 };
const badParams = { status: 400, code: -32602, id: 0 };
const gone = { status: 404, code: -32600 };
const none = { "mcp-session-id": null };
const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const STREAM = { accept: "text/event-stream" };

/** Returns the id of the session that a fixture has opened. */
const sessionOf = ({ good }: Fixture) => String(good.headers["mcp-session-id"]);

cases("independent requests of an old revision are served without a session", { version: LEGACY }, () => [
  { name: "a request", headers: none, status: 200, id: 1 },
  { name: "a notification", headers: none, body: '{"jsonrpc":"2.0","method":"x"}', status: 202 },
  { name: "an answer", headers: none, body: '{"jsonrpc":"2.0","id":1,"result":{}}', status: 202 },
  { name: "a batch", headers: none, body: `[${list}]`, ...invalid },
  { name: "GET", method: "GET", headers: { ...none, ...STREAM }, status: 405, code: -32600 },
  { name: "DELETE", method: "DELETE", headers: none, status: 405, code: -32600 },
  { name: "ping", headers: none, body: list.replace("tools/list", "ping"), status: 200, id: 1 },
]);

cases("requests without a session are refused where sessions are required", {
  version: LEGACY,
  server: { requireSession: true },
}, () => [
  { name: "a request", headers: none, ...invalid, id: 1 },
  { name: "a notification", headers: none, body: '{"jsonrpc":"2.0","method":"x"}', ...invalid },
  { name: "an answer", headers: none, body: '{"jsonrpc":"2.0","id":1,"result":{}}', ...invalid },
  { name: "a batch", headers: none, body: `[${list}]`, ...invalid },
  { name: "GET", method: "GET", headers: { ...none, ...STREAM }, ...invalid },
  { name: "DELETE", method: "DELETE", headers: none, ...invalid },
  { name: "ping before the handshake", headers: none, body: list.replace("tools/list", "ping"), ...invalid, id: 1 },
]);

Deno.test("session ids cannot be guessed: 2,000 ids show no pattern", async () => {
  const server = openServer();
  const ids = await Promise.all(Array.from({ length: 2000 }, async () => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const request = new Request("http://localhost/mcp", { method: "POST", headers, body: JSON.stringify(initialize) });
    const response = await server.fetch(request);
    await response.body?.cancel();
    return response.headers.get("mcp-session-id") ?? "";
  }));
  assertEquals(new Set(ids).size, ids.length);
  for (const id of ids) assertMatch(id, /^[\x21-\x7e]{32,}$/);
  // An id begins with a nonce and ends with a seal. If nearly all of 64 characters occur at each position, an id
  // contains neither a time nor a counter. The chance that a character is missing from 2,000 random ids is 1 in 10^12.
  for (const place of [...Array(16).keys(), ...Array.from({ length: 20 }, (_, i) => -2 - i)]) {
    const seen = new Set(ids.map((id) => id.at(place)));
    assert(seen.size >= 60, `position ${place} takes only ${seen.size} characters`);
  }
});

Deno.test("DELETE during a call aborts the handler and ends the call", async (t) => {
  for (const accept of ["application/json, text/event-stream", "text/event-stream", "application/json"]) {
    const isStream = accept !== "application/json";
    await t.step(
      `the call is aborted, and ${isStream ? "its stream closes" : "the response is an error"} (${accept})`,
      async () => {
        await using fixture = await startFixture({ version: LEGACY });
        const running = await fixture.connect();
        const body = JSON.stringify(toMessage("legacy", {}, { name: "hold" }));
        await running.write(toBytes(fixture.port, fixture.good, { headers: { accept }, body }));
        await until(() => fixture.ran.includes("hold"), "the tool runs");
        if (isStream) assertEquals((await running.readHead())?.status, 200);
        const ended = await fixture.send({ method: "DELETE" });
        assertEquals([ended?.status, ended?.body], [204, ""]);
        await until(() => fixture.ran.includes("aborted"), "the tool is aborted");
        if (isStream) {
          const rest = await running.readRest();
          assertNotMatch(rest, /"result"/);
        } else {
          const answer = await running.read();
          assertEquals([answer?.status, JSON.parse(answer?.body ?? "").error.code], [200, -32600]);
        }
        for (const request of [{}, { method: "GET", headers: STREAM }, { method: "DELETE" }]) {
          assertEquals((await fixture.send(request))?.status, 404);
        }
      },
    );
  }
});

Deno.test("an invalid or damaged session id is refused", async (t) => {
  await using fixture = await startFixture({ version: LEGACY });
  const id = sessionOf(fixture);
  const last = id.at(-1) === "A" ? "B" : "A";
  const bad: readonly (string | readonly string[])[] = [
    "__proto__",
    "constructor",
    "0",
    "",
    "*",
    "../..",
    "x".repeat(16_000),
    "\xff\xfe",
    "a b",
    "a\tb",
    `${id}\xa0`,
    `${id}\x85`,
    `\xad${id}`,
    `${id}=`,
    `${id}==`,
    `${id}A`,
    id.slice(0, -1),
    id.slice(1),
    id.slice(0, -1) + last,
    id.toUpperCase(),
    `${id}, ${id}`,
    `"${id}"`,
    `${id};x`,
    [id, id],
    [id, "x"],
    ["x", id],
  ];
  for (const each of bad) {
    const name = `${JSON.stringify(each).slice(0, 40)} (${bad.indexOf(each)}) gets 404`;
    for (const request of [{}, { method: "GET", headers: STREAM }, { method: "DELETE" }]) {
      const one: Case = {
        name,
        ...request,
        headers: { ...request.headers, "mcp-session-id": each },
        id: request.method ? undefined : 1,
        ...gone,
      };
      await t.step(`a ${request.method ?? "POST"} request with the session id ${name}`, () => fixture.check(one));
    }
  }
  const long: Case = {
    name: "an id of 64 KB",
    headers: { "mcp-session-id": "x".repeat(65_536) },
    ...gone,
    id: 1,
    dropped: { deno: 400, bun: 431 },
  };
  await t.step(long.name, () => fixture.check(long));
  for (const control of ["\x01", "\x7f"]) {
    const one: Case = {
      name: `an id with ${JSON.stringify(control)}`,
      headers: { "mcp-session-id": id + control },
      ...gone,
      id: 1,
      dropped: { deno: 400, bun: control === "\x01" ? 400 : undefined },
    };
    await t.step(one.name, () => fixture.check(one));
  }
  const spaced = {
    name: "spaces around a header's value are not part of it",
    headers: { "mcp-session-id": ` ${id}\t ` },
  };
  await t.step(spaced.name, () => fixture.check({ ...spaced, status: 200 }));
});

cases(
  "a stream cannot resume after an event that the session does not have",
  { version: LEGACY },
  () =>
    ["garbage", "1e30", "__proto__", "a_b_c", "x".repeat(5000), `${crypto.randomUUID().slice(0, 13)}_1`].map((id) => ({
      name: `GET after event ${id.slice(0, 20)}`,
      method: "GET",
      headers: { ...STREAM, "last-event-id": id },
      ...invalid,
    })),
);

Deno.test("a session keeps its version, whatever version the header names", async (t) => {
  await using fixture = await startFixture({ version: LEGACY });
  const each: readonly Case[] = [
    {
      name: "another known version is accepted (the session keeps its own)",
      headers: { "mcp-protocol-version": "2025-03-26" },
      status: 200,
    },
    {
      name: "another known version enables none of its features: a batch stays refused",
      headers: { "mcp-protocol-version": "2025-03-26" },
      body: `[${list}]`,
      ...invalid,
    },
    { name: "an unknown version", headers: { "mcp-protocol-version": "1999-01-01" }, ...invalid, id: 1 },
    { name: "two versions", headers: { "mcp-protocol-version": [LEGACY, LEGACY] }, status: 400, code: -32602, id: 1 },
    {
      name: "without a version header, the session's version applies",
      headers: { "mcp-protocol-version": null },
      status: 200,
    },
  ];
  for (const one of each) await t.step(one.name, () => fixture.check(one));
});

Deno.test("a handshake is validated before it opens a session", async (t) => {
  await using fixture = await startFixture({ version: LEGACY });
  const hello = (protocolVersion: unknown, more = {}) =>
    JSON.stringify({ ...initialize, params: { ...initialize.params, protocolVersion, ...more } });
  const fresh = { ...none, "mcp-protocol-version": null };
  const each: readonly Case[] = [
    { name: "a second handshake in the session", body: hello(LEGACY), ...invalid, id: 0 },
    { name: "a list in the session", body: list, status: 200 },
    ...["2099-01-01", "2026-07-28", "1999-01-01", "", "__proto__"].map((version) => ({
      name: `a handshake for ${JSON.stringify(version)} negotiates the newest revision with a handshake`,
      headers: fresh,
      body: hello(version),
      status: 200,
      says: `"protocolVersion":"${LEGACY}"`,
      runs: false,
    })),
    ...[undefined, null, 20251125, {}].map((version) => ({
      name: `a handshake for ${JSON.stringify(version)}`,
      headers: fresh,
      body: hello(version),
      ...badParams,
    })),
    ...[{ capabilities: [] }, { clientInfo: "x" }, { clientInfo: [] }].map((more) => ({
      name: `a handshake with ${JSON.stringify(more)}`,
      headers: fresh,
      body: hello(LEGACY, more),
      ...badParams,
    })),
    {
      name: "a handshake whose capabilities do not fit into an id is refused, and gets no invalid id",
      headers: fresh,
      body: hello(LEGACY, { capabilities: { experimental: { x: "y".repeat(20_000) } } }),
      ...badParams,
      says: "capabilities",
    },
    {
      name: "a name of 1 MB in a handshake is truncated",
      headers: fresh,
      body: hello(LEGACY, { clientInfo: { name: "n".repeat(1_000_000), version: "v".repeat(1_000_000) } }),
      status: 200,
      runs: false,
    },
    {
      name: "a handshake without params",
      headers: fresh,
      body: JSON.stringify({ ...initialize, params: undefined }),
      ...badParams,
    },
    { name: "a handshake as a notification", headers: fresh, body: hello(LEGACY).replace('"id":0,', ""), status: 202 },
  ];
  for (const one of each) await t.step(one.name, () => fixture.check(one));
  await t.step("a session is valid if the size of its handshake was just within the limit", async () => {
    const body = hello(LEGACY, { capabilities: { experimental: { x: "y".repeat(4000) } } });
    const answer = await fixture.send({ headers: fresh, body });
    const session = answer?.headers.get("mcp-session-id") ?? "";
    assertEquals((await fixture.send({ headers: { "mcp-session-id": session } }))?.status, 200);
  });
});

Deno.test("a new stream of a session gets the notifications, even if the server does not know that the old client is gone", async () => {
  await using fixture = await startFixture({ version: LEGACY });
  const open = toBytes(fixture.port, fixture.good, { method: "GET", headers: STREAM });
  const first = await fixture.connect();
  await first.write(open);
  assertEquals((await first.readHead())?.status, 200);
  const second = await fixture.connect();
  await second.write(open);
  assertEquals((await second.readHead())?.status, 200);
  fixture.server.handlers.add(tool({ name: "added", run: () => "" }));
  assertMatch(await second.readUntil(/notifications\/tools\/list_changed/), /data: /);
  second.close();
  const third = await fixture.connect();
  await third.write(open);
  assertEquals((await third.readHead())?.status, 200);
  third.close();
  // When the session ends, the first stream ends without the messages for the second stream.
  await fixture.send({ method: "DELETE" });
  assertNotMatch(await first.readUntil(/\r\n0\r\n\r\n$/), /list_changed/);
  first.close();
});

Deno.test("an idle session ends, but a session with a running call or an open stream stays valid", async (t) => {
  const limits = testLimits({
    calls: { timeoutMs: Infinity },
    connections: { sessionIdleMs: 100_000 },
    sessions: { lifeMs: 1_000_000 },
  });

  await t.step("a call before notifications/initialized is served", async () => {
    await using fixture = await startFixture({ version: LEGACY });
    await fixture.checkAlive("after this");
  });

  await t.step("after connections.sessionIdleMs, requests in the session get 404", async () => {
    const clock = fakeClock();
    await using fixture = await startFixture({ version: LEGACY, server: { clock, limits } });
    await fixture.checkAlive("after this");
    await clock.advance(90_000);
    await fixture.checkAlive("shortly before");
    await clock.advance(90_000);
    await fixture.checkAlive("each call resets the idle timer");
    await clock.advance(161_000);
    const answer = await fixture.send({});
    assertEquals([answer?.status, readError(answer?.body ?? "").code], [404, -32600]);
  });

  await t.step("a session with a running call stays valid", async () => {
    const clock = fakeClock();
    await using fixture = await startFixture({ version: LEGACY, server: { clock, limits } });
    const running = await fixture.connect();
    const body = JSON.stringify(toMessage("legacy", { id: "held" }, { name: "hold" }));
    await running.write(toBytes(fixture.port, fixture.good, { body, headers: { accept: "application/json" } }));
    await until(() => fixture.ran.includes("hold"), "the tool runs");
    await clock.advance(400_000);
    assert(!fixture.ran.includes("aborted"), "the running call was ended");
    await fixture.checkAlive("after this");
    const cancel = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "held" } });
    assertEquals((await fixture.send({ body: cancel }))?.status, 202);
    await until(() => fixture.ran.includes("aborted"), "the call is cancelled");
    await clock.advance(161_000);
    assertEquals((await fixture.send({}))?.status, 404);
  });

  await t.step("a session with an open stream stays valid", async () => {
    const clock = fakeClock();
    await using fixture = await startFixture({ version: LEGACY, server: { clock, limits } });
    const stream = await fixture.connect();
    await stream.write(toBytes(fixture.port, fixture.good, { method: "GET", headers: STREAM }));
    assertEquals((await stream.readHead())?.status, 200);
    const read = stream.readRest();
    await clock.advance(400_000);
    await fixture.checkAlive("after this");
    stream.close();
    await read.catch(() => {});
    for (let i = 0; i < 20; i++) await clock.advance(20_000);
    assertEquals((await fixture.send({}))?.status, 404);
  });

  await t.step("a session whose state was evicted from memory still expires", async () => {
    const clock = fakeClock();
    await using fixture = await startFixture({ version: LEGACY, server: { clock, limits } });
    await clock.advance(1_000_001);
    assertEquals((await fixture.send({}))?.status, 404);
  });
});
