// Required scopes, step-up authorization, and streams that end when the token expires, in both eras.
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { prompt, resource, tool } from "../../mod.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { TestIssuer } from "../support/issuer.ts";
import { METADATA, protect } from "../support/protected.ts";
import { readReply, toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";

const scopes = ["notes:read", "notes:write"];
const handlers = [
  tool({ name: "write", scopes, run: () => "written" }),
  tool({ name: "secret", allow: (ctx) => ctx.principal?.scopes?.includes("admin") ?? false, run: () => "" }),
  prompt({ name: "ask", scopes, run: () => "text" }),
  resource({ uri: "note://1", name: "one", scopes, read: () => "text" }),
];

function toLegacy(method: string, params: object, headers: Record<string, string>): Request {
  return new Request("http://localhost/mcp", {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
}

const initialize = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "c", version: "1" },
};

Deno.test("a call that needs more scopes gets 403 with all required scopes, before a stream opens", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { handlers, oauth: { scopes: ["notes:read"] } });
  const authorization = `Bearer ${await issuer.sign({ claims: { scope: "notes:read" } })}`;
  const begun = await server.fetch(toLegacy("initialize", initialize, { authorization }));
  const session = { authorization, "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
  const operations = [
    ["tools/call", { name: "write" }],
    ["prompts/get", { name: "ask" }],
    ["resources/read", { uri: "note://1" }],
  ] as const;
  for (const [method, params] of operations) {
    for (const request of [toRequest(method, params, { authorization }), toLegacy(method, params, session)]) {
      const response = await server.fetch(request);
      assertEquals([response.status, response.headers.get("www-authenticate")], [
        403,
        `Bearer error="insufficient_scope", scope="notes:read notes:write", resource_metadata="${METADATA}"`,
      ]);
      assertMatch(response.headers.get("content-type") ?? "", /^application\/json/);
      await response.body?.cancel();
    }
  }
  // A client can continue the session with a new token that has these scopes.
  const more = { ...session, authorization: `Bearer ${await issuer.sign({ claims: { scope: scopes.join(" ") } })}` };
  for (const [method, params] of operations) {
    for (
      const request of [
        toRequest(method, params, { authorization: more.authorization }),
        toLegacy(method, params, more),
      ]
    ) {
      const response = await server.fetch(request);
      const text = await response.text();
      assertEquals(response.status, 200, text);
      assert(text.includes('"result"'), text);
    }
  }
});

Deno.test("MUST grant access if a granted scope includes the required scope", async () => {
  await using issuer = await TestIssuer.start();
  const satisfies = (granted: readonly string[], needed: readonly string[]) =>
    needed.every((scope) => granted.includes(scope) || granted.includes(scope.split(":")[0]));
  await using server = protect([issuer], { handlers, oauth: { satisfies } });
  const statusOf = async (scope: string) => {
    const authorization = `Bearer ${await issuer.sign({ claims: { scope } })}`;
    const response = await server.fetch(toRequest("tools/call", { name: "write" }, { authorization }));
    await response.body?.cancel();
    return response.status;
  };
  assertEquals(await statusOf("notes"), 200);
  assertEquals(await statusOf("notes:write notes:read"), 200);
  assertEquals(await statusOf("notes:write"), 403);
  assertEquals(await statusOf("mail"), 403);
});

Deno.test("a caller's list contains handlers whose scopes the caller lacks but no hidden handlers, and is private to the caller", async () => {
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { handlers });
  for (const [scope, names] of [["", ["whoami", "write"]], ["admin", ["whoami", "write", "secret"]]] as const) {
    const authorization = `Bearer ${await issuer.sign({ claims: { scope } })}`;
    const { result } = await readReply(await server.fetch(toRequest("tools/list", {}, { authorization })));
    assertEquals(result.tools.map(({ name }: { readonly name: string }) => name).sort(), [...names].sort());
    assertEquals(result.cacheScope, "private");
  }
});

Deno.test("a subscription and a stream end when their token expires", async () => {
  const clock = fakeClock(Date.UTC(2030, 0, 1));
  await using issuer = await TestIssuer.start();
  await using server = protect([issuer], { server: { clock } });
  const at = clock.date() / 1000;
  const authorization = `Bearer ${await issuer.sign({ claims: { exp: at + 20 } })}`;
  const listen = await server.fetch(
    toRequest("subscriptions/listen", { notifications: { toolsListChanged: true } }, { authorization }),
  );
  const begun = await server.fetch(toLegacy("initialize", initialize, { authorization }));
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
  const accept = { accept: "text/event-stream" };
  const stream = await server.fetch(
    new Request("http://localhost/mcp", { headers: { authorization, ...session, ...accept } }),
  );
  assertEquals([listen.status, stream.status], [200, 200]);
  let ended = 0;
  const texts = Promise.all([listen, stream].map(async (response) => {
    const text = await response.text();
    ended++;
    return text;
  }));
  await clock.advance(19_000);
  assertEquals(ended, 0);
  await clock.advance(1001);
  assertEquals((await texts)[0].includes("resultType"), false);
  await clock.advance(10_000);
  assertEquals((await server.fetch(toLegacy("ping", {}, { authorization, ...session }))).status, 401);
  const renewed = `Bearer ${await issuer.sign({ claims: { exp: at + 600 } })}`;
  assertEquals((await server.fetch(toLegacy("ping", {}, { authorization: renewed, ...session }))).status, 200);
});

Deno.test("MUST NOT use sessions for authentication: a token of another user cannot use a session or answer an elicitation", async () => {
  await using one = await TestIssuer.start();
  await using two = await TestIssuer.start();
  await using server = protect([one, two], {
    handlers: [tool({
      name: "sure",
      run: async (_, ctx) =>
        (await ctx.elicit("sure", { message: "Sure?", schema: { type: "object", properties: {} } })).action,
    })],
  });
  const [own, same, other] = [await one.sign(), await two.sign(), await one.sign({ claims: { sub: "eve" } })];
  const begun = await server.fetch(toLegacy("initialize", initialize, { authorization: `Bearer ${own}` }));
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
  for (const [token, status] of [[own, 200], [same, 404], [other, 404]] as const) {
    const response = await server.fetch(toLegacy("ping", {}, { authorization: `Bearer ${token}`, ...session }));
    assertEquals(response.status, status);
  }
  assertEquals((await server.fetch(toLegacy("ping", {}, session))).status, 401);
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } };
  const ask = async (token: string, params: object = {}) => {
    const request = toRequest("tools/call", { name: "sure", _meta, ...params }, { authorization: `Bearer ${token}` });
    return await readReply(await server.fetch(request));
  };
  const { result } = await ask(own);
  const answer = { requestState: result.requestState, inputResponses: { sure: { action: "accept", content: {} } } };
  for (const token of [same, other]) {
    assertStringIncludes((await ask(token, answer)).error.message, sentence("requestState"));
  }
  assertEquals((await ask(own, answer)).result.content[0].text, "accept");
});
