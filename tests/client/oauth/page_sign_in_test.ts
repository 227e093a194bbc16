// The sign-in of a web page: the browser leaves the page, and another load of the page completes the sign-in. The page is
// a fake; tests/examples/browser_test.ts opens a real one.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
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

Deno.test("an address that is not a response of a sign-in stays as it is", async () => {
  await using opened = open();
  const { tab } = opened;
  await opened.leave(opened.load());
  for (const address of [`${APP}?state=x`, `${APP}?code=x`, `${APP}other?code=x&state=x`, `${APP}#code=x&state=x`]) {
    tab.address = address;
    assertEquals([await opened.load().finish(), tab.address], [false, address]);
  }
});

Deno.test("pageSignIn() throws for unusable options, and outside a page", () => {
  {
    using _tab = new Tab();
    const wrong: Record<string, unknown>[] = [
      { redirectUri: "https://evil.example/" },
      { redirectUri: "https://app.example.com.evil.example/" },
      { redirectUri: `${APP}#x` },
      { redirectUri: "/callback" },
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
