// The `auth` option of the client: sending tokens, and renewing refused tokens.
import { assertEquals, assertRejects } from "@std/assert";
import { type AuthChallenge, type ClientAuth, connect, McpError } from "../../src/client/client.ts";
import { createServer, tool } from "../../mod.ts";
import { textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

/** Creates a server that accepts only the current token. */
function createProtected() {
  const hello = tool({ name: "hello", run: () => "Hello!" });
  const server = createServer({ name: "protected", version: "1.0.0", handlers: [hello] });
  const state = { valid: "token-1", seen: [] as (string | null)[], status: 401, challenge: 'Bearer scope="a b"' };
  return {
    state,
    close: () => server.close(),
    fetch: async (request: Request) => {
      const header = request.headers.get("authorization");
      state.seen.push(header);
      if (header === `Bearer ${state.valid}`) return await server.fetch(request);
      return new Response(null, { status: state.status, headers: { "www-authenticate": state.challenge } });
    },
  };
}

const url = "http://localhost/mcp";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`each request contains a token, and concurrent requests share the renewal of a refused token (${era})`, async () => {
    const { state, fetch, close } = createProtected();
    const challenges: AuthChallenge[] = [];
    let token = "token-1";
    const auth: ClientAuth = {
      token: () => token,
      async refresh(challenge) {
        challenges.push(challenge);
        await Promise.resolve();
        token = state.valid;
        return true;
      },
    };
    const client = await connect(url, { era, fetch, auth });
    assertEquals(new Set(state.seen), new Set(["Bearer token-1"]));
    state.valid = "token-2";
    const results = await Promise.all(Array.from({ length: 5 }, () => client.callTool("hello")));
    assertEquals(results.map(textOf), Array(5).fill("Hello!"));
    assertEquals(challenges, [
      { url, status: 401, header: state.challenge, params: { scope: "a b" }, token: "token-1" },
    ]);
    await client.close();
    await close();
  });

  Deno.test(`a request fails after the server has refused its token four times (${era})`, async () => {
    const { state, fetch, close } = createProtected();
    const auth: ClientAuth = { token: () => "wrong", refresh: () => true };
    const error = await assertRejects(() => connect(url, { era, fetch, auth }), McpError);
    assertEquals([error.status, state.seen.length], [401, 4]);
    await close();
  });
}

Deno.test("a request is sent again only if refresh returns true", async () => {
  for (const returned of [false, undefined, null, "token", {}, new Promise((resolve) => resolve(undefined))]) {
    const { state, fetch, close } = createProtected();
    // The cast passes a result of the wrong type on purpose.
    const auth = { token: () => "wrong", refresh: () => returned } as unknown as ClientAuth;
    await assertRejects(() => connect(url, { fetch, auth }), McpError);
    assertEquals(state.seen.length, 1);
    await close();
  }
});

Deno.test("a token is renewed if it lacks scopes, but not for any other 403 response", async () => {
  const { state, fetch, close } = createProtected();
  state.status = 403;
  let asked: AuthChallenge | undefined;
  const auth: ClientAuth = { token: () => "weak", refresh: (challenge) => Boolean(asked = challenge) && false };
  await assertRejects(() => connect(url, { fetch, auth }), McpError);
  assertEquals(asked, undefined);
  state.challenge =
    'Basic realm="x", Bearer error="insufficient_scope", scope=write, resource_metadata="https://a/\\"b"';
  await assertRejects(() => connect(url, { fetch, auth }), McpError);
  assertEquals(asked?.params, { error: "insufficient_scope", scope: "write", resource_metadata: 'https://a/"b' });
  await close();
});

Deno.test("an invalid token is refused before a request is sent, and the error does not contain the token", async () => {
  for (const token of ["", "a\nb: c", 5, null, {}]) {
    const { state, fetch, close } = createProtected();
    const auth = { token: () => token } as unknown as ClientAuth; // The cast passes a token of the wrong type on purpose.
    const error = await assertRejects(() => connect(url, { fetch, auth }), Error, sentence("auth.token"));
    assertEquals([state.seen, String(error).includes("a\nb")], [[], false]);
    await close();
  }
});

Deno.test("connect throws if the auth option would have no effect", async () => {
  const auth: ClientAuth = { token: () => "t" };
  await using server = createServer({ name: "s", version: "1" });
  await assertRejects(() => connect(server, { auth }), TypeError, sentence("auth", "URL"));
  await assertRejects(() => connect({ command: "true" }, { auth }), TypeError, sentence("auth", "URL"));
  const headers = { Authorization: "Bearer x" };
  await assertRejects(() => connect(url, { auth, headers }), TypeError, sentence("auth", "headers", "Authorization"));
});

Deno.test("a request with a bound token contains a proof, and the next proof contains the server's nonce", async () => {
  const seen: (string | null)[][] = [];
  const challenges: AuthChallenge[] = [];
  const fetch = (request: Request) => {
    seen.push(["authorization", "dpop"].map((name) => request.headers.get(name)));
    const headers = { "www-authenticate": 'DPoP error="use_dpop_nonce"', "dpop-nonce": "n1" };
    return Promise.resolve(new Response(null, { status: 401, headers }));
  };
  let proof = "proof-1";
  const auth: ClientAuth = {
    token: ({ method }) => ({ token: "t", proof: `${proof}-${method}` }),
    refresh(challenge) {
      challenges.push(challenge);
      proof = "proof-2";
      return challenges.length === 1;
    },
  };
  await assertRejects(() => connect(url, { fetch, auth, era: "modern" }), McpError);
  assertEquals(seen, [["DPoP t", "proof-1-POST"], ["DPoP t", "proof-2-POST"]]);
  const { nonce, params } = challenges[0];
  assertEquals([nonce, params], ["n1", { error: "use_dpop_nonce" }]);
});

Deno.test("the time that a sign-in takes does not count towards the timeouts of requests", async () => {
  const { state, fetch, close } = createProtected();
  const signedIn = Promise.withResolvers<boolean>();
  const held: { token?: string } = {};
  let isAsked = false;
  const auth: ClientAuth = {
    token: () => held.token,
    refreshMs: 60_000,
    refresh: () => {
      isAsked = true;
      return signedIn.promise;
    },
  };
  const connecting = connect(url, { fetch, auth, timeoutMs: 700 });
  // Without `refreshMs`, the request timeout also includes the time of the sign-in.
  const late: ClientAuth = { token: () => undefined, refresh: () => signedIn.promise };
  await assertRejects(() => connect(url, { fetch, auth: late, timeoutMs: 1000 }), DOMException, sentence(1000));
  assertEquals(isAsked, true);
  held.token = state.valid;
  signedIn.resolve(true);
  const client = await connecting;
  assertEquals(textOf(await client.callTool("hello", {}, { timeoutMs: 10_000 })), "Hello!");
  await client.close();
  await close();
});

Deno.test("a sign-in is aborted when the last request that waits for the sign-in is aborted", async () => {
  const { fetch, close } = createProtected();
  const asked = Promise.withResolvers<AbortSignal>();
  const auth: ClientAuth = {
    token: () => undefined,
    refreshMs: 60_000,
    refresh: (_, { signal }) => {
      asked.resolve(signal);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
  const stop = new AbortController();
  const connecting = assertRejects(() => connect(url, { fetch, auth, signal: stop.signal }));
  const signal = await asked.promise;
  assertEquals(signal.aborted, false);
  stop.abort(new Error("enough"));
  await connecting;
  assertEquals(signal.aborted, true);
  await close();
});
