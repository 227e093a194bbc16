// The loopback server that receives the redirect from an authorization server.
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { SignInError } from "../../../src/client/oauth/errors.ts";
import { loopback, type SignInAttempt } from "../../../src/client/oauth/oauth.ts";
import { sentence } from "../../support/messages.ts";
import { pickPort } from "../../support/processes.ts";

const page = (state: string) => ({
  url: `https://login.example.com/authorize?state=${state}`,
  server: "https://mcp.example.com/mcp",
  issuer: "https://login.example.com",
  scopes: [],
});

const begun = { issuer: "https://login.example.com", path: "/callback/a1" };
const start = async (): Promise<SignInAttempt> => await loopback({ open: () => {} })(begun);
const never = new AbortController().signal;

async function look(url: string, init?: RequestInit): Promise<readonly [number, string]> {
  const response = await fetch(url, { redirect: "manual", ...init });
  return [response.status, await response.text()];
}

async function isClosed(attempt: SignInAttempt): Promise<boolean> {
  return await fetch(attempt.redirectUri).then((response) => response.body?.cancel().then(() => false), () => true) ??
    false;
}

Deno.test("the redirect is accepted only once, and the page shows the outcome of the sign-in", async () => {
  const attempt = await start();
  const visit = attempt.visit(page("s1"), { signal: never });
  const last = look(`${attempt.redirectUri}?code=code-of-ada&state=s1&iss=x`);
  assertEquals(await visit, `${attempt.redirectUri}?code=code-of-ada&state=s1&iss=x`);
  const [again, text] = await look(`${attempt.redirectUri}?code=c2&state=s1`);
  assertEquals(again, 409);
  assertStringIncludes(text, `<p>${sentence()}<p>`);
  await attempt.end();
  const [status, shown] = await last;
  assertEquals([status, shown.includes("code-of-ada")], [200, false]);
  assertStringIncludes(shown, `<p>${sentence()}<p>`);
  assertEquals(await isClosed(attempt), true);
});

Deno.test("a request with another state, path, method or host changes nothing", async () => {
  const attempt = await start();
  // Before a sign-in starts, every redirect is refused, even with the state "undefined".
  assertEquals((await look(`${attempt.redirectUri}?code=c&state=undefined`))[0], 400);
  const visit = attempt.visit(page("s1"), { signal: never });
  const local = attempt.redirectUri.replace("127.0.0.1", "localhost");
  for (
    const [url, init, expected] of [
      [`${attempt.redirectUri}?code=evil&state=s2`, {}, 400],
      [`${attempt.redirectUri}?code=evil`, {}, 400],
      [`${attempt.redirectUri}?code=evil&state=s2&state=s1`, {}, 400],
      [attempt.redirectUri.replace("/callback/a1", "/?code=evil&state=s1"), {}, 404],
      [attempt.redirectUri.replace("/callback/a1", "/callback?code=evil&state=s1"), {}, 404],
      [attempt.redirectUri.replace("/a1", "/b2?code=evil&state=s1"), {}, 404],
      [attempt.redirectUri.replace("/a1", "/A1?code=evil&state=s1"), {}, 404],
      [attempt.redirectUri.replace("/a1", "/..%2fa1?code=evil&state=s1"), {}, 404],
      [`${attempt.redirectUri}?code=evil&state=s1`, { method: "POST" }, 405],
      [`${local}?code=evil&state=s1`, {}, 403],
    ] as const
  ) assertEquals((await look(url, init).catch(() => [expected]))[0], expected, url);
  const last = look(`${attempt.redirectUri}?code=good&state=s1`);
  assertStringIncludes(await visit, "code=good");
  await attempt.end(new Error("a secret detail"));
  const [status, text] = await last;
  assertEquals([status, text.includes("secret")], [400, false]);
  assertEquals(await isClosed(attempt), true);
});

Deno.test("the page's headers forbid frames, caching and scripts, and the page contains no URL", async () => {
  const attempt = await start();
  const response = await fetch(`${attempt.redirectUri}?state=<script>`);
  await response.body?.cancel();
  const names = ["cache-control", "content-security-policy", "referrer-policy", "x-content-type-options"];
  assertEquals(names.map((name) => response.headers.get(name)), [
    "no-store",
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "no-referrer",
    "nosniff",
  ]);
  await attempt.end();
});

Deno.test("the loopback server stops listening if the sign-in is aborted or its page cannot be opened", async () => {
  const attempt = await start();
  const stop = new AbortController();
  const visit = attempt.visit(page("s1"), { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assertRejects(() => visit, Error, "enough");
  await attempt.end(new Error("enough"));
  assertEquals(await isClosed(attempt), true);

  const blind = await loopback({ open: () => Promise.reject(new Error("no browser")) })(begun);
  await assertRejects(() => blind.visit(page("s1"), { signal: never }), Error, "no browser");
  await blind.end(new Error("no browser"));
  assertEquals(await isClosed(blind), true);
});

/** Starts a sign-in on a port that no other process gets after the sign-in. */
async function startOnPort(): Promise<{ readonly port: number; readonly attempt: SignInAttempt }> {
  for (;;) {
    const port = pickPort();
    try {
      return { port, attempt: await loopback({ port, open: () => {} })(begun) };
    } catch (error) {
      // Another process listens on this port.
      if (!(error instanceof SignInError)) throw error;
    }
  }
}

Deno.test("the port option sets the port, and a sign-in fails if the port is in use", async () => {
  const { port, attempt } = await startOnPort();
  assertEquals(attempt.redirectUri, `http://127.0.0.1:${port}/callback/a1`);
  await assertRejects(async () => await loopback({ port, open: () => {} })(begun), SignInError, `127.0.0.1:${port}`);
  await attempt.end();
  const chosen = await loopback({ port, open: () => {} })(begun);
  assertEquals(chosen.redirectUri, `http://127.0.0.1:${port}/callback/a1`);
  await chosen.end();
  for (const wrong of [-1, 65_536, 1.5, NaN]) {
    assertThrows(() => loopback({ port: wrong, open: () => {} }), TypeError, sentence("port", wrong, 65535));
  }
});
