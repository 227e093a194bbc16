// The sign-in of a web page: the browser leaves the page, and another load of the page completes the sign-in. The page is
// a fake; tests/examples/browser_test.ts opens a real one.
import { assert, assertEquals, assertRejects, assertThrows, fail } from "@std/assert";
import { memoryTokens, type PageSignIn, pageSignIn, type PageSignInOptions } from "../../../src/client/oauth/oauth.ts";
import { textOf, until } from "../../support/behaviour.ts";
import { sentence } from "../../support/messages.ts";
import { Bed, type Wrong } from "./bed.ts";
import { APP, Tab } from "./tab.ts";

interface Opened extends AsyncDisposable {
  readonly bed: Bed;
  readonly tab: Tab;
  /** Loads the page: a token source without the tokens and registrations of earlier pages, unless `store` has some. */
  load(options?: Partial<PageSignInOptions>): PageSignIn;
  /** Uses the server until the page leaves, and sets the address to what the authorization server would redirect to. */
  leave(auth: PageSignIn): Promise<URL>;
}

function open(wrong: Wrong = {}): Opened {
  const [bed, tab] = [new Bed(wrong), new Tab()];
  return {
    bed,
    tab,
    load: (options) => pageSignIn({ redirectUri: APP, fetch: bed.fetch, ...options }),
    async leave(auth) {
      const left = new AbortController();
      const using = bed.connect(auth, { signal: left.signal });
      const leaving = until(() => tab.visited.some((url) => url.startsWith(bed.issuer)), "the page leaves");
      await Promise.race([using, leaving]);
      left.abort(); // The page ends.
      const { searchParams } = new URL(tab.visited.findLast((url) => url.startsWith(bed.issuer)) ?? "");
      const attempt = await bed.userAgent({ issuer: bed.issuer, path: "" });
      const signal = new AbortController().signal;
      const page = {
        url: `${bed.issuer}/authorize?${searchParams}`,
        server: bed.server,
        issuer: bed.issuer,
        scopes: [],
      };
      tab.address = await attempt.visit(page, { signal });
      tab.visited.length = 0;
      return new URL(tab.address);
    },
    async [Symbol.asyncDispose]() {
      tab[Symbol.dispose]();
      await bed[Symbol.asyncDispose]();
    },
  };
}

/** Registers a test that `finish` rejects, without a token request. */
function refuses(name: string, change: (opened: Opened, back: URL) => void, wrong?: Wrong): void {
  Deno.test(`a page refuses ${name}`, async () => {
    await using opened = open(wrong);
    const { tab, bed } = opened;
    const back = await opened.leave(opened.load());
    change(opened, back);
    tab.address = back.href;
    const error = await assertRejects(() => opened.load().finish(), Error);
    assertEquals(error.message, sentence());
    assertEquals([tab.address, bed.forms.length], [APP, 0]);
    assertEquals([...bed.secrets].filter((secret) => error.message.includes(secret)), []);
  });
}

Deno.test("a page leaves for the sign-in page, and another load of the page completes the sign-in", async () => {
  await using opened = open();
  const { tab, bed } = opened;
  assertEquals(await opened.load().finish(), false);
  const back = await opened.leave(opened.load());
  assertEquals([back.origin + back.pathname, tab.stored.size], [APP, 1]);
  const auth = opened.load();
  assertEquals(await auth.finish(), true);
  assertEquals([tab.visited, [...tab.stored]], [[APP], []]);
  await using client = await bed.connect(auth);
  assertEquals(textOf(await client.callTool("hello")), "Hello!");
  assertEquals([bed.visits.length, bed.forms.length], [1, 1]);
  assertEquals(bed.forms[0].redirect_uri, APP);
  assertEquals(await auth.finish(), false);
  const urls = bed.seen.map(({ url }) => url).join("\n");
  assertEquals([...bed.secrets].filter((secret) => urls.includes(secret)), []);
});

Deno.test("a page uses each response once, and each sign-in has its own state and verifier", async () => {
  await using opened = open();
  const first = await opened.leave(opened.load());
  await opened.load().finish();
  opened.tab.address = first.href;
  const error = await assertRejects(() => opened.load().finish(), Error);
  assertEquals(error.message, sentence());
  const second = await opened.leave(opened.load());
  assert(first.searchParams.get("state") !== second.searchParams.get("state"));
  await opened.load().finish();
  const [one, two] = opened.bed.forms.map(({ code_verifier: verifier }) => verifier);
  assert(one !== two);
});

refuses("a response with another state", (_, back) => back.searchParams.set("state", "x"));
refuses("a response without the issuer", (_, back) => back.searchParams.delete("iss"));
refuses("a response of another issuer", (_, back) => back.searchParams.set("iss", "https://evil.example"));
refuses("a response that another tab has started", ({ tab }) => tab.stored.clear());
refuses("a rejection of the authorization server", (_, back) => {
  back.searchParams.delete("code");
  back.searchParams.set("error", "access_denied");
});
{
  let isMoved = false;
  const resourceMetadata = (right: Record<string, unknown>) =>
    isMoved
      ? { ...right, resource: "https://mcp.example.com/mcp", authorization_servers: ["https://login.example.com/x"] }
      : right;
  const metadata = (right: Record<string, unknown>, url: URL) =>
    url.pathname.endsWith("/x") ? { ...right, issuer: "https://login.example.com/x" } : right;
  refuses("a code after the server has named another authorization server", () => isMoved = true, {
    resourceMetadata,
    metadata,
  });
}

Deno.test("a page does not leave for an authorization server that does not announce iss, unless it is named", async () => {
  const metadata = ({ authorization_response_iss_parameter_supported: _, ...right }: Record<string, unknown>) => right;
  await using opened = open({ metadata });
  const { bed, tab } = opened;
  const error = await assertRejects(() => bed.connect(opened.load()), Error);
  assertEquals(error.message, sentence(bed.issuer));
  assertEquals([tab.visited, tab.stored.size], [[], 0]);
  const client = { id: "app", issuer: bed.issuer };
  const back = await opened.leave(opened.load({ client }));
  back.searchParams.delete("iss");
  tab.address = back.href;
  assertEquals(await opened.load({ client }).finish(), true);
});

Deno.test("a page with a store signs in once", async () => {
  await using opened = open();
  const { bed, tab } = opened;
  const store = memoryTokens();
  await opened.leave(opened.load({ store }));
  await opened.load({ store }).finish();
  await using client = await bed.connect(opened.load({ store }));
  assertEquals(textOf(await client.callTool("hello")), "Hello!");
  assertEquals(tab.visited, [APP]);
});

Deno.test("a page signs in and calls in a browser whose streams are not iterable, such as Safari", async () => {
  await using opened = open();
  const { bed } = opened;
  const fetch = async (request: Request) => {
    const response = await bed.fetch(request);
    if (response.body) Object.defineProperty(response.body, Symbol.asyncIterator, { value: undefined });
    return response;
  };
  const auth = opened.load({ fetch });
  await opened.leave(auth);
  await auth.finish();
  await using client = await bed.connect(auth, { fetch });
  assertEquals(textOf(await client.callTool("hello")), "Hello!");
});

Deno.test("a page requests more scopes, and binds tokens to a key", async () => {
  let needed = ["read"];
  const token = (right: Record<string, unknown>) => ({ ...right, token_type: "DPoP" });
  await using opened = open({ token, scopes: () => needed });
  const { bed, tab } = opened;
  await opened.leave(opened.load({ dpop: true }));
  const auth = opened.load({ dpop: true });
  await auth.finish();
  {
    await using client = await bed.connect(auth);
    assertEquals(textOf(await client.callTool("hello")), "Hello!");
  }
  needed = ["read", "write"];
  await opened.leave(auth);
  assertEquals(bed.visits.at(-1)?.get("scope"), "read write");
  const next = opened.load({ dpop: true });
  await next.finish();
  await using client = await bed.connect(next);
  assertEquals(textOf(await client.callTool("hello")), "Hello!");
  assertEquals([(await next.info(bed.server))?.scopes, tab.stored.size], [["read", "write"], 0]);
  assertEquals(bed.visits.map((visit) => visit.has("dpop_jkt")), [false, false]);
});

Deno.test("a call fails if the user comes back without signing in, or if the page cannot be opened", async () => {
  await using opened = open();
  const { bed, tab } = opened;
  const calling = bed.connect(opened.load());
  await until(() => tab.visited.length > 0, "the page leaves");
  dispatchEvent(Object.assign(new Event("pageshow"), { persisted: false }));
  dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  assertEquals((await assertRejects(() => calling, Error)).message, sentence());
  const open_ = () => Promise.reject(new Error("no button"));
  assertEquals((await assertRejects(() => bed.connect(opened.load({ open: open_ })), Error)).message, "no button");
});

Deno.test("a page that connects without finish() gets an error, instead of leaving again and again", async () => {
  await using opened = open();
  const { tab, bed } = opened;
  const back = await opened.leave(opened.load());
  const error = await assertRejects(() => bed.connect(opened.load()), Error);
  assertEquals(error.message, sentence("finish()"));
  assertEquals([tab.address, tab.visited, bed.forms.length], [back.href, [], 0]);
  // The sign-in is not lost.
  assertEquals(await opened.load().finish(), true);
  // A page can have a code of its own in its address.
  tab.address = `${APP}?code=mine&state=other`;
  await opened.leave(opened.load());
});

Deno.test("an address that is not a response of a sign-in stays as it is", async () => {
  await using opened = open();
  const { tab } = opened;
  await opened.leave(opened.load());
  for (const address of [`${APP}?state=x`, `${APP}?code=x`, `${APP}other?code=x&state=x`, `${APP}#code=x&state=x`]) {
    tab.address = address;
    assertEquals([await opened.load().finish(), tab.address], [false, address]);
  }
});

Deno.test("a page does not leave for a sign-in page that is not an https URL", async () => {
  const urls = [
    "javascript:alert(1)",
    " JavaScript:alert(1)//https://login.example.com/",
    "data:text/html,x",
    "blob:https://app.example.com/0",
    "http://login.example.com/authorize",
    "https://ada@login.example.com/authorize",
    "/authorize",
    "https://10.0.0.1/authorize",
  ];
  for (const url of urls) {
    await using opened = open({ metadata: (right) => ({ ...right, authorization_endpoint: url }) });
    const { bed, tab } = opened;
    const error = await assertRejects(() => bed.connect(opened.load()), Error);
    assertEquals([error.message, tab.visited, tab.stored.size], [sentence("sign-in page"), [], 0]);
  }
});

Deno.test("a page that asks for two sign-ins at once completes each of them", async () => {
  await using opened = open();
  const { bed, tab } = opened;
  const pages: string[] = [];
  const open_ = ({ url }: { readonly url: string }) => void pages.push(url);
  const left = new AbortController();
  const all = [1, 2, 3].map(() => bed.connect(opened.load({ open: open_ }), { signal: left.signal }).catch(() => {}));
  await until(() => pages.length === 3, "the page shows three buttons");
  left.abort();
  await Promise.all(all);
  for (const url of pages) {
    const attempt = await bed.userAgent({ issuer: bed.issuer, path: "" });
    const page = { url, server: bed.server, issuer: bed.issuer, scopes: [] };
    tab.address = await attempt.visit(page, { signal: new AbortController().signal });
    const auth = opened.load();
    assertEquals(await auth.finish(), true);
    await using client = await bed.connect(auth);
    assertEquals(textOf(await client.callTool("hello")), "Hello!");
  }
  assertEquals(tab.stored.size, 0);
});

Deno.test("a page that starts many sign-ins does not fill its storage", async () => {
  await using opened = open();
  for (let i = 0; i < 20; i++) {
    opened.tab.address = APP; // The user opens the page again.
    await opened.leave(opened.load());
  }
  assertEquals(await opened.load().finish(), true);
  assert([...opened.tab.stored.values()].join().length < 10_000);
});

Deno.test("a page signs in, whatever its storage contains", async () => {
  const texts = ["", "{", "null", "5", "{}", "[null, 5, {}]", '"__proto__"', '[{"__proto__":{"state":"x"}}]'];
  for (const text of texts) {
    await using opened = open();
    const { tab } = opened;
    tab.stored.set("mcp sign-in", text);
    for (const state of ["x", "__proto__", "undefined", "[object Object]"]) {
      tab.address = `${APP}?code=x&state=${state}`;
      assertEquals((await assertRejects(() => opened.load().finish(), Error)).message, sentence());
      assertEquals(tab.address, APP);
    }
    await opened.leave(opened.load());
    assertEquals(await opened.load().finish(), true);
  }
});

Deno.test("a sign-in at another server does not use the code of a sign-in that a page completes", async () => {
  await using opened = open();
  const { bed, tab } = opened;
  await using other = new Bed({ server: "https://other.example.com/mcp", issuer: "https://id.example.com" });
  const gate = Promise.withResolvers<void>();
  const fetch = async (request: Request) => {
    const isOther = [other.server, other.issuer].some((url) => request.url.startsWith(new URL(url).origin));
    if (!isOther && request.url.endsWith("/token")) await gate.promise;
    return await (isOther ? other : bed).fetch(request);
  };
  await opened.leave(opened.load());
  const auth = opened.load({ fetch });
  const finishing = auth.finish();
  const left = new AbortController();
  const connecting = other.connect(auth, { fetch, signal: left.signal }).catch((error) => error.message);
  const leaves = () => tab.visited.some((url) => url.startsWith(other.issuer));
  await Promise.race([until(leaves, "the page leaves for the other sign-in page"), connecting.then(fail)]);
  gate.resolve();
  assertEquals(await finishing, true);
  left.abort();
  await connecting;
  assertEquals([bed.forms.length, other.forms.length], [1, 0]);
});

Deno.test("a page uses a code once, although it connects before it calls finish()", async () => {
  await using opened = open();
  const { bed, tab } = opened;
  const address = (await opened.leave(opened.load())).href;
  tab.address = APP;
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const fetch = async (request: Request) => {
    if (request.url.includes("/.well-known/oauth-protected")) {
      gates[0].resolve();
      await gates[1].promise;
    }
    return await bed.fetch(request);
  };
  const auth = opened.load({ fetch });
  const connecting = bed.connect(auth, { fetch });
  await gates[0].promise;
  tab.address = address;
  const finishing = auth.finish();
  gates[1].resolve();
  assertEquals(await finishing, true);
  await using client = await connecting;
  assertEquals(textOf(await client.callTool("hello")), "Hello!");
  assertEquals([bed.forms.length, tab.visited], [1, [APP]]);
});

Deno.test("a page names the redirect of a token endpoint, whose status browsers hide", async () => {
  await using opened = open();
  await opened.leave(opened.load());
  const hidden = Object.defineProperties(new Response(null), {
    type: { value: "opaqueredirect" },
    status: { value: 0 },
  });
  const fetch = (request: Request) =>
    request.url.endsWith("/token") ? Promise.resolve(hidden) : opened.bed.fetch(request);
  const error = await assertRejects(() => opened.load({ fetch }).finish(), Error);
  assertEquals(error.message, sentence("redirect"));
});

Deno.test("pageSignIn() throws for unusable options, and outside a page", () => {
  {
    using _tab = new Tab();
    const wrong: Record<string, unknown>[] = [
      { redirectUri: "https://evil.example/" },
      { redirectUri: "https://app.example.com.evil.example/" },
      { redirectUri: `${APP}#x` },
      { redirectUri: "/callback" },
      { redirectUri: new URL(APP) },
      { client: { id: "a", secret: "b" } },
      { client: { id: 1 } },
      { client: { id: "a", issuer: "b" } },
      { clientMetadataUrl: "http://app.example.com/client.json" },
      { open: "https://login.example.com" },
      { signInMs: 1 },
    ];
    for (const options of wrong) {
      const all = { redirectUri: APP, ...options } as PageSignInOptions; // The cast allows wrong options.
      assertEquals(assertThrows(() => pageSignIn(all), TypeError).message, sentence());
    }
  }
  assertEquals(assertThrows(() => pageSignIn({ redirectUri: APP }), TypeError).message, sentence());
});

for (
  const [what, blocked] of [["the server", "/mcp"], ["the metadata", "/.well-known/"], ["the token endpoint", "/token"]]
) {
  Deno.test(`a page is told that CORS headers may be missing if the browser blocks a request to ${what}`, async () => {
    await using opened = open();
    const { tab, bed } = opened;
    tab.address = (await opened.leave(opened.load())).href;
    const fetch = async (request: Request) => {
      if (new URL(request.url).pathname.startsWith(blocked)) throw new TypeError("Failed to fetch");
      return await bed.fetch(request);
    };
    const auth = opened.load({ fetch });
    const use = async () => {
      await auth.finish();
      await bed.connect(auth, { fetch });
    };
    const error = await assertRejects(use, Error);
    assertEquals(error.message, sentence());
    assert(error.message.includes(new URL(APP).origin), error.message);
  });
}
