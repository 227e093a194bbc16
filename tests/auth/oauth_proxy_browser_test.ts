// The consent page of `oauthProxy` in a real Chromium.
import { assert, assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { oauthProxy } from "../../src/auth/oauth/proxy/proxy.ts";
import { sha256 } from "../../src/core/kit/sha256.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { launchBrowser, missing } from "../support/chromium.ts";
import { TestProvider, verifier } from "./proxy_flow.ts";

/** Starts a server, a provider that signs the user in at once, and a client that receives the redirect. */
async function open(waits = false) {
  const callbacks: URLSearchParams[] = [];
  const client = await openHttpServer((request) => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/callback") callbacks.push(searchParams);
    return Promise.resolve(
      new Response("<!doctype html><title>client</title>", { headers: { "content-type": "text/html" } }),
    );
  });
  const provider = new TestProvider();
  const { promise: made, resolve } = Promise.withResolvers<{ fetch(request: Request, info?: object): unknown }>();
  // deno-lint-ignore no-explicit-any
  const http = await openHttpServer(async (request, info) => await (await made as any).fetch(request, info));
  const { origin } = http;
  const login = await openHttpServer((request) => {
    const { pathname, searchParams: query } = new URL(request.url);
    if (pathname !== "/authorize") return Promise.resolve(new Response(null, { status: 404 }));
    const back = new URL(query.get("redirect_uri") ?? "");
    back.search = `${new URLSearchParams({ state: query.get("state") ?? "", code: "code" })}`;
    const page = `<!doctype html><a href="${back.href.replaceAll("&", "&amp;")}">Sign in</a>`;
    const waiting = new Response(page, { headers: { "content-type": "text/html" } });
    return Promise.resolve(waits ? waiting : Response.redirect(back, 302));
  });
  const auth = oauthProxy({
    resource: `${origin}/mcp`,
    provider: {
      ...provider.provider,
      endpoints: () =>
        Promise.resolve({ authorize: `${login.origin}/authorize`, token: "https://provider.example/token" }),
      findUser: () => Promise.resolve({ subject: "7", facts: {} }),
    },
    fetch: () => Promise.resolve(Response.json({ access_token: "x", token_type: "bearer" })),
    who: () => true,
    scopes: ["notes:read"],
  });
  const server = createServer({ name: "notes", version: "1.0.0", auth });
  resolve(server);
  const redirectUri = `${client.origin}/callback`;
  const registered = await fetch(`${origin}/register`, {
    method: "POST",
    body: JSON.stringify({ client_name: "Notes reader", redirect_uris: [redirectUri] }),
  });
  const { client_id } = await registered.json();
  const toUrl = async (state: string) => {
    const url = new URL(`${origin}/authorize`);
    url.search = `${new URLSearchParams({
      response_type: "code",
      client_id,
      redirect_uri: redirectUri,
      code_challenge: await sha256(verifier),
      code_challenge_method: "S256",
      state,
    })}`;
    return url.href;
  };
  return {
    callbacks,
    toUrl,
    async [Symbol.asyncDispose]() {
      await server.close();
      for (const each of [http, login, client]) await each.stop();
    },
  };
}

const options = { ignore: missing !== undefined };

Deno.test("a user consents with the keyboard, in two tabs, twice and after going back", options, async () => {
  await using flow = await open();
  const { callbacks, toUrl } = flow;
  await using browser = await launchBrowser(320);
  const { page, context } = browser;
  await page.goto(await toUrl("one"));
  const width = await page.evaluate("document.documentElement.scrollWidth");
  assertEquals(width, 320, "the page fits a narrow screen");
  assertEquals(await page.locator("h1").textContent(), `Allow Notes reader to use ${new URL(await toUrl("x")).host}?`);
  const other = await context.newPage();
  await other.goto(await toUrl("two"));
  await page.bringToFront();
  // The first focusable element is the button that continues.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForURL(/callback\?.*code=.*state=one/);
  await other.bringToFront();
  await other.getByRole("button", { name: "Continue to Provider" }).dblclick();
  await other.waitForURL(/callback\?.*code=.*state=two/);
  assertEquals(new Set(callbacks.map((query) => query.get("state"))), new Set(["one", "two"]));
  for (const query of callbacks) assert(query.get("code") && query.get("iss"));
  await page.goBack();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.waitForURL(/callback\?.*access_denied/);
  assertEquals(callbacks.at(-1)?.get("error"), "access_denied");
});

Deno.test("a browser that blocks cookies gets a page with the reason", options, async () => {
  await using flow = await open(true);
  await using browser = await launchBrowser();
  const { page } = browser;
  await page.goto(await flow.toUrl("one"));
  await page.getByRole("button", { name: "Continue to Provider" }).click();
  await page.getByRole("link", { name: "Sign in" }).waitFor();
  await browser.context.clearCookies();
  await page.getByRole("link", { name: "Sign in" }).click();
  await page.getByText("blocks cookies").waitFor();
  assertEquals(flow.callbacks, []);
});
