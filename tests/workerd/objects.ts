// Tests of the recipe in examples/workers: each user has a server in a Durable Object.
import { assert, assertEquals } from "@std/assert";
import { createHostFetch } from "../frameworks/host_fetch.ts";
import { probe } from "../frameworks/probe.ts";
import { until } from "../support/behaviour.ts";
import { ask, callInSession, callTool, type Headers, openSession, post } from "./requests.ts";
import { serveWorker, type Worker } from "./workerd.ts";

const root = new URL("../../", import.meta.url).pathname;
const MCP_SECRET = "a secret of the tests, with enough characters";
const KEYS = { ADA_KEY: "ada-2f6c1e0b9d4a7853", BOB_KEY: "bob-8d3f5a7c6e1b9042" };
const ada = { authorization: `Bearer ${KEYS.ADA_KEY}` };
const bob = { authorization: `Bearer ${KEYS.BOB_KEY}` };

/** The name of a user's object in the example. */
const OF_USER = 'principal ? `user ${principal.id}` : "everyone"';

interface RecipeOptions {
  /** The file in tests/workerd that takes the place of the example's server.ts. */
  readonly server?: string;
  /** The expression that takes the place of {@linkcode OF_USER}. */
  readonly name?: string;
}

/** Serves the Worker of the example with another server. */
async function serveRecipe(
  variables: Readonly<Record<string, string>> = KEYS,
  { server = "probe_objects.ts", name = OF_USER }: RecipeOptions = {},
): Promise<Worker> {
  const folder = await Deno.makeTempDir({ prefix: "recipe-" });
  try {
    const worker = await Deno.readTextFile(`${root}examples/workers/worker.ts`);
    assert(worker.includes(OF_USER));
    await Deno.writeTextFile(`${folder}/worker.ts`, worker.replace(OF_USER, () => name));
    await Deno.writeTextFile(`${folder}/server.ts`, `export { create } from "${root}tests/workerd/${server}";\n`);
    return await serveWorker(`${folder}/worker.ts`, { variables: { MCP_SECRET, ...variables }, hasObjects: true });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Probes a server as a user. Returns the behaviours that did not pass. */
async function findFaults(origin: string, headers: Headers = {}): Promise<Readonly<Record<string, string>>> {
  const outcome = await probe(`${origin}/mcp`, (request) => {
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
    return fetch(request);
  });
  return Object.fromEntries(Object.entries(outcome).filter(([, what]) => what !== "passed"));
}

/** Tests that all behaviours pass. workerd reports a disconnect only when the server writes its next heartbeat. */
function assertPassed(faults: Readonly<Record<string, string>>): void {
  const { disconnect = "passed", ...others } = faults;
  assertEquals(others, {});
  assert(/^passed$|^the call was cancelled after ([4-9]|1\d) s$/.test(disconnect), disconnect);
}

/** Replaces one character in the middle of a text. */
function forge(text: string): string {
  const at = Math.floor(text.length / 2);
  return text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
}

export const checks: Readonly<Record<string, () => Promise<void>>> = {
  async "two users have all behaviours of the probe at the same time, each in one object"() {
    await using worker = await serveRecipe();
    for (const faults of await Promise.all([ada, bob].map((user) => findFaults(worker.origin, user)))) {
      assertPassed(faults);
    }
    // The Worker itself, and an object for each user.
    assertEquals(await callTool(`${worker.origin}/mcp`, "count_servers", {}, ada), "3");
  },

  async "a server without auth has all behaviours of the probe, in one object for all clients"() {
    await using worker = await serveRecipe({});
    assertPassed(await findFaults(worker.origin));
    assertEquals(await callTool(`${worker.origin}/mcp`, "count_servers"), "2");
  },

  async "all requests of a user reach one object, and no other user reaches this object"() {
    await using worker = await serveRecipe();
    const url = `${worker.origin}/mcp`;
    const seen = await Promise.all([ada, bob].map(async (user) => {
      const session = await openSession(url, user);
      const { message } = await callInSession(url, session, "which_server");
      const calls = Array.from({ length: 20 }, () => callTool(url, "which_server", {}, user));
      return new Set([message.result.content[0].text, ...await Promise.all(calls)]);
    }));
    assertEquals(seen.map(({ size }) => size), [1, 1]);
    assertEquals(seen[0].isDisjointFrom(seen[1]), true);
  },

  async "a request without valid credentials gets HTTP 401 from the Worker, and reaches no object"() {
    await using worker = await serveRecipe();
    const url = `${worker.origin}/mcp`;
    const session = await openSession(url, ada);
    const sealed = session["mcp-session-id"];
    const wrong: readonly Headers[] = [
      {},
      { authorization: "Bearer ada-2f6c1e0b9d4a7854" },
      { authorization: "Bearer ada" },
      { authorization: `Basic ${btoa("ada:ada")}` },
      { "mcp-session-id": sealed },
      { "mcp-session-id": "foreign" },
      { "cf-connecting-ip": "127.0.0.1", "x-forwarded-for": "127.0.0.1", "mcp-session-id": sealed },
    ];
    for (const headers of wrong) {
      assertEquals((await ask(url, "tools/list", {}, headers)).status, 401, JSON.stringify(headers));
      assertEquals((await post(url, { jsonrpc: "2.0", id: 1, method: "initialize" }, headers)).status, 401);
    }
    const others = await Promise.all(["GET", "DELETE"].map(async (method) => {
      const headers = { "mcp-session-id": sealed, accept: "text/event-stream" };
      const response = await fetch(url, { method, headers });
      await response.body?.cancel();
      return response.status;
    }));
    assertEquals(others, [401, 401]);
    assertEquals(await callTool(url, "count_servers", {}, ada), "2");
  },

  async "a session id that the server has not sealed for the user gets HTTP 404, and creates no object"() {
    await using worker = await serveRecipe();
    await using other = await serveRecipe({ ...KEYS, MCP_SECRET: MCP_SECRET.toUpperCase() });
    const url = `${worker.origin}/mcp`;
    const [own, ofBob] = [await openSession(url, ada), await openSession(url, bob)];
    const ofOther = await openSession(`${other.origin}/mcp`, ada);
    const id = own["mcp-session-id"];
    const wrong = [
      ofBob["mcp-session-id"],
      ofOther["mcp-session-id"],
      forge(id),
      id.slice(1),
      `${id}A`,
      `${id}, ${id}`,
      "user apikey:bob",
      "everyone",
      "../bob",
      "x".repeat(16_000),
      ...Array.from({ length: 100 }, () => crypto.randomUUID()),
    ];
    for (const each of wrong) {
      const session = { ...own, "mcp-session-id": each };
      assertEquals((await callInSession(url, session, "which_server")).status, 404, each.slice(0, 60));
      const streamed = await fetch(url, { headers: { ...session, accept: "text/event-stream" } });
      const ended = await fetch(url, { method: "DELETE", headers: session });
      assertEquals([streamed.status, ended.status], [404, 404], each.slice(0, 60));
      await Promise.all([streamed.body?.cancel(), ended.body?.cancel()]);
    }
    // Both sessions still work, and the answers come from the objects of their users.
    const answers = await Promise.all([own, ofBob].map((session) => callInSession(url, session, "which_server")));
    assertEquals(new Set(answers.map(({ message }) => message.result.content[0].text)).size, 2);
    assertEquals(await callTool(url, "count_servers", {}, ada), "3");
  },

  async "headers that name another user, object or address do not change the object"() {
    await using worker = await serveRecipe();
    const url = `${worker.origin}/mcp`;
    const [ofAda, ofBob] = [await callTool(url, "which_server", {}, ada), await callTool(url, "which_server", {}, bob)];
    const games: readonly Headers[] = [
      { "x-user": "bob", "x-principal": "apikey:bob", "cf-worker": "bob", "x-object": "user apikey:bob" },
      { "cf-connecting-ip": "203.0.113.7", "x-forwarded-for": "203.0.113.7" },
      { cookie: `key=${KEYS.BOB_KEY}`, "x-api-key": KEYS.BOB_KEY },
      { "proxy-authorization": bob.authorization, "mcp-session-id": "" },
    ];
    for (const headers of games) {
      assertEquals(await callTool(url, "which_server", {}, { ...headers, ...ada }), ofAda, JSON.stringify(headers));
    }
    // Two credentials in a header are not valid credentials.
    const both = { authorization: `${ada.authorization}, ${bob.authorization}` };
    assertEquals((await ask(url, "tools/list", {}, both)).status, 400);
    assertEquals(ofAda === ofBob, false);
    const foreign = { origin: "https://evil.example.com", ...ada };
    assertEquals((await ask(url, "tools/list", {}, foreign)).status, 403);
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...ada };
    const request = new Request(url, { method: "POST", headers, body: "{}" });
    const rebound = await createHostFetch(Number(new URL(url).port), "evil.example.com")(request);
    assertEquals(rebound.status, 403);
    await rebound.body?.cancel();
    assertEquals(await callTool(url, "count_servers", {}, ada), "3");
  },

  async "a page of an origin in cors calls the server in an object, whose responses have immutable headers"() {
    await using worker = await serveRecipe();
    const url = `${worker.origin}/mcp`;
    const origin = "https://app.example.com";
    assertEquals((await ask(url, "tools/list", {}, { origin, ...ada })).status, 200);
    const headers = { origin, ...ada, "content-type": "application/json", accept: "application/json" };
    const response = await fetch(url, { method: "POST", headers, body: "{}" });
    await response.body?.cancel();
    assertEquals([response.status, response.headers.get("access-control-allow-origin")], [400, origin]);
  },

  async "the members of a tenant share an object, whichever tenant is in the path"() {
    const options = { server: "tenant_objects.ts", name: "`tenant ${principal?.tenant}`" };
    await using worker = await serveRecipe({ ...KEYS, EVE_KEY: "eve-8d3f5a7c6e1b9043" }, options);
    const call = (tenant: string, user: Headers, name = "which_server") =>
      ask(`${worker.origin}/tenants/${tenant}/mcp`, "tools/call", { name, arguments: {} }, user);
    const eve = { authorization: "Bearer eve-8d3f5a7c6e1b9043" };
    const callers = [["acme", ada], ["acme", eve], ["globex", bob]] as const;
    const answers = await Promise.all(callers.map(([tenant, user]) => call(tenant, user)));
    const [ofAda, ofEve, ofBob] = answers.map(({ message }) => message.result.content[0].text);
    assertEquals([ofEve, ofBob === ofAda], [ofAda, false]);
    for (const tenant of ["globex", "none", "apikey:bob", "..%2fglobex", "x".repeat(500)]) {
      const { message } = await call(tenant, ada);
      assertEquals(message.result?.content?.[0].text, undefined, tenant);
    }
    assertEquals((await call("acme", {})).status, 401);
    assertEquals((await call("acme", ada, "count_servers")).message.result.content[0].text, "3");
  },

  async "objects that share a store serve the requests of a client in turn"() {
    await using worker = await serveWorker(`${root}tests/workerd/store_worker.ts`, {
      variables: { MCP_SECRET },
      hasObjects: true,
    });
    assertPassed(await findFaults(worker.origin));
  },

  async "an object that starts again continues sessions and questions with the same secret"() {
    const question = { name: "ask", arguments: {} };
    let session: Readonly<Record<string, string>>;
    let asked;
    {
      await using worker = await serveRecipe();
      session = await openSession(`${worker.origin}/mcp`, ada);
      asked = (await ask(`${worker.origin}/mcp`, "tools/call", question, ada)).message.result;
    }
    await using worker = await serveRecipe();
    const url = `${worker.origin}/mcp`;
    assertEquals((await callInSession(url, session, "which_server")).status, 200);
    const { requestState, inputRequests } = asked;
    const inputResponses = { [Object.keys(inputRequests)[0]]: { action: "accept", content: { name: "Ada" } } };
    const answer = { ...question, requestState, inputResponses };
    assertEquals((await ask(url, "tools/call", answer, ada)).message.result.content[0].text, "Ada");
    // Another user cannot use the state.
    assertEquals((await ask(url, "tools/call", answer, bob)).message.result?.content, undefined);
  },

  async "work that continues after the response ends in an object, without waitUntil"() {
    await using worker = await serveRecipe();
    const url = `${worker.origin}/mcp`;
    const clientCapabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
    const _meta = { "io.modelcontextprotocol/clientCapabilities": clientCapabilities };
    assertEquals(await callTool(url, "later", { text: "deferred" }, ada), "later");
    const started = await ask(url, "tools/call", { name: "slow", arguments: { text: "task" }, _meta }, ada);
    const { taskId } = started.message.result;
    assertEquals(typeof taskId, "string", JSON.stringify(started));
    const read = async () => (await ask(url, "tasks/get", { taskId, _meta }, ada)).message.result?.status;
    await until(async () => await read() === "completed", "the task has completed", read);
    await until(async () => /deferred/.test(await callTool(url, "list_ended", {}, ada)), "the function has ended");
    // Only the user of the task can read it.
    assertEquals((await ask(url, "tasks/get", { taskId, _meta }, bob)).message.result, undefined);
  },
};
