// Users of this library's client sign in at real authorization servers, to use a server of this library.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, tool } from "../../../mod.ts";
import { requirePrincipal } from "../../../src/auth/auth.ts";
import { oauth } from "../../../src/auth/oauth/oauth.ts";
import { connect } from "../../../src/client/client.ts";
import { memoryTokens, signIn, type SignInOptions, type UserAgent } from "../../../src/client/oauth/oauth.ts";
import { CLIENT_DOCUMENT, REDIRECT, signIn as visitAs, startOidc } from "../../auth/oidc.ts";
import { textOf } from "../../support/behaviour.ts";

const url = "http://localhost:7788/mcp";

/** Creates a user agent that follows the redirects of a sign-in instead of opening a browser. */
function browserOf(user: string, visits: string[] = []): UserAgent {
  return () => ({
    redirectUri: REDIRECT,
    async visit({ url, scopes }) {
      visits.push(scopes.join(" "));
      return (await visitAs(new URL(url), user)).href;
    },
    end: () => {},
  });
}

/**
 * Creates a server that stores notes per user, and a `fetch` that reaches this server and the authorization servers.
 */
function createNotes(issuer: string, options: { readonly dpop?: "required" } = {}) {
  const notes = new Map<string, string[]>();
  const add = tool({
    name: "add",
    scopes: ["notes:write"],
    input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const,
    run({ text }, ctx) {
      const { id } = requirePrincipal(ctx);
      notes.set(id, [...notes.get(id) ?? [], text]);
      return "Added.";
    },
  });
  const list = tool({
    name: "list",
    scopes: ["notes:read"],
    run: (_, ctx) => (notes.get(requirePrincipal(ctx).id) ?? []).join(),
  });
  const auth = oauth({ resource: url, issuers: [issuer], scopes: ["notes:read"], ...options });
  const server = createServer({ name: "notes", version: "1.0.0", auth, handlers: [add, list] });
  const seen: string[] = [];
  return {
    seen,
    fetch: async (request: Request) => {
      if (new URL(request.url).host !== "localhost:7788") return await fetch(request);
      const token = request.headers.get("authorization");
      if (token) seen.push(token);
      return await server.fetch(request);
    },
    close: () => server.close(),
  };
}

const clients: Readonly<Record<string, Partial<SignInOptions>>> = {
  "registers itself": {},
  "has a metadata document": { clientMetadataUrl: CLIENT_DOCUMENT },
};

for (const era of ["modern", "legacy"] as const) {
  for (const [name, options] of Object.entries(clients)) {
    Deno.test(
      `a client that ${name} signs users in, and each user sees only their own notes (${era})`,
      async () => {
        await using oidc = await startOidc();
        const { fetch, close } = createNotes(oidc.issuers.first);
        const open = (user: string, visits: string[] = []) =>
          connect(url, { era, fetch, auth: signIn({ ...options, fetch, userAgent: browserOf(user, visits) }) });
        const visits: string[] = [];
        const [ada, bob] = [await open("ada", visits), await open("bob")];
        assertEquals(textOf(await ada.callTool("list")), "");
        // The tool needs a scope that the client has not requested before, so the user signs in again.
        await ada.callTool("add", { text: "of Ada" });
        await bob.callTool("add", { text: "of Bob" });
        assertEquals([textOf(await ada.callTool("list")), textOf(await bob.callTool("list"))], ["of Ada", "of Bob"]);
        assertEquals(visits, ["notes:read offline_access", "notes:read offline_access notes:write"]);
        for (const client of [ada, bob]) await client.close();
        await close();
      },
    );
  }
}

Deno.test(
  "several clients share stored tokens, only one client renews the tokens, and signing out revokes the tokens",
  async () => {
    await using oidc = await startOidc();
    const { fetch, close, seen } = createNotes(oidc.issuers.second);
    const store = memoryTokens();
    const visits: string[] = [];
    const create = () => signIn({ fetch, store, userAgent: browserOf("ada", visits) });
    const first = create();
    await (await connect(url, { fetch, auth: first })).close();
    assertEquals(visits.length, 1);
    const info = await first.info(url);
    assert(info?.expiresAt && info.expiresAt > Date.now() && info.canRefresh, JSON.stringify(info));
    assertEquals([info.issuer, info.resource, info.scopes], [oidc.issuers.second, url, ["notes:read"]]);

    // Make the stored token expire, so that each client detects the expiry on its first request.
    await store.update(`server ${url}`, (text) => {
      const held = JSON.parse(text ?? "{}");
      return Promise.resolve(JSON.stringify({ ...held, expiresAt: Date.now() - 1000 }));
    });
    seen.length = 0;
    const several = await Promise.all([1, 2, 3, 4].map(() => connect(url, { fetch, auth: create() })));
    assertEquals([new Set(seen).size, visits.length], [1, 1]);
    for (const client of several) await client.close();

    assertEquals([await first.signOut(url), await first.signOut(url)], [true, false]);
    assertEquals(await create().info(url), undefined);
    await close();
  },
);

Deno.test("if the server requires DPoP, tokens are bound to a key, even after a renewal", async () => {
  await using oidc = await startOidc();
  const { fetch, close, seen } = createNotes(oidc.issuers.first, { dpop: "required" });
  for (const era of ["modern", "legacy"] as const) {
    const store = memoryTokens();
    const open = () =>
      connect(url, { era, fetch, auth: signIn({ fetch, store, userAgent: browserOf(`bound ${era}`) }) });
    const client = await open();
    await client.callTool("add", { text: "x" });
    await store.update(
      `server ${url}`,
      (text) => Promise.resolve(JSON.stringify({ ...JSON.parse(text ?? ""), expiresAt: 1 })),
    );
    // Another client of the same user finds the key in the store.
    const other = await open();
    assertEquals(textOf(await other.callTool("list")), "x");
    for (const each of [client, other]) await each.close();
  }
  assertEquals(seen.filter((token) => !token.startsWith("DPoP ")), []);
  await close();
});

Deno.test(
  "a request fails if the user cancels the sign-in, and the next request starts a new sign-in",
  async () => {
    await using oidc = await startOidc();
    const { fetch, close } = createNotes(oidc.issuers.first);
    let isWilling = false;
    const browser = browserOf("ada");
    const auth = signIn({
      fetch,
      userAgent: async (start) => {
        const attempt = await browser(start);
        if (isWilling) return attempt;
        return {
          ...attempt,
          visit: ({ url }) => {
            const state = new URL(url).searchParams.get("state");
            const params = new URLSearchParams({ error: "access_denied", state: state ?? "", iss: oidc.issuers.first });
            return Promise.resolve(`${REDIRECT}?${params}`);
          },
        };
      },
    });
    await assertRejects(() => connect(url, { fetch, auth }), Error, "access_denied");
    isWilling = true;
    await (await connect(url, { fetch, auth })).close();
    await close();
  },
);
