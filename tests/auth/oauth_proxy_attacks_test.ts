// Attacks on `oauthProxy`: each test is an attack that must fail.
import { assert, assertEquals } from "@std/assert";
import { memoryStore } from "../../src/stores/stores.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import {
  Browser,
  call,
  open,
  origin,
  redirectUri,
  refresh,
  register,
  signIn,
  TestProvider,
  toRequest,
} from "./proxy_flow.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** A body that sends one byte and never ends. `isCancelled` is set when the server stops reading it. */
function toSlowBody() {
  const state = { isCancelled: false };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array([97])),
    cancel() {
      state.isCancelled = true;
    },
  });
  return { body, state };
}

Deno.test("bodies that never end prevent no registration, and the server stops reading them", async () => {
  const clock = fakeClock();
  const { browser, server } = open({}, { clock, store: memoryStore({ clock }) });
  await server.ready();
  const bodies = Array.from({ length: 70 }, toSlowBody);
  const paths = ["/token", "/consent", "/revoke", ...Array.from({ length: 67 }, () => "/register")];
  const answers = paths.map((path, at) =>
    browser.open(origin + path, { method: "POST", body: bodies[at].body, headers: { ...FORM, origin } })
  );
  // The server reads all bodies before it handles the next request of another peer.
  const registration = { method: "POST", body: JSON.stringify({ redirect_uris: [redirectUri] }) };
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve));
  assertEquals((await new Browser(server, "192.0.2.9").open(`${origin}/register`, registration)).status, 201);
  await clock.advance(10_000);
  for (const { status } of await Promise.all(answers)) assert([200, 400, 503].includes(status), `${status}`);
  await new Promise((resolve) => setTimeout(resolve));
  assertEquals(bodies.filter(({ state }) => !state.isCancelled).length, 0);
  await server.close();
});

Deno.test("a request with very many parameters costs little, and the page shows none of their names", async () => {
  const { browser, server } = open();
  const query = Array.from({ length: 16_000 }, (_, at) => at.toString(36)).join("&");
  await (await browser.open(`${origin}/authorize`)).body?.cancel();
  const start = performance.now();
  const page = await browser.open(`${origin}/authorize?${query}&call+us=1&call+us=2`);
  // A comparison of each name with each other name takes more than a second.
  assert(performance.now() - start < 300, `${performance.now() - start} ms`);
  assertEquals([page.status, (await page.text()).includes("call us")], [400, false]);
  await server.close();
});

Deno.test("after a change of the provider, tokens of the old provider are not accepted and not sent", async () => {
  const store = memoryStore();
  const old = open({}, { store });
  const { client, access, refresh: token } = await signIn(old);
  const { provider: { provider } } = old;
  for (const change of [{ name: "Other" }, { clientId: "other" }]) {
    const other = new TestProvider();
    const changed = open({ provider: { ...provider, ...change }, fetch: other.fetch, prefix: "provider" }, { store });
    assertEquals((await call(changed, access))[0], 401);
    assertEquals((await refresh(changed.browser, client, token)).status, 400);
    assertEquals(other.requests.length, 0);
    // Clients remain registered.
    assertEquals((await changed.browser.open(await toRequest(client))).status, 200);
  }
  await old.server.close();
});

Deno.test("an invalid request is no redirect to the host of a metadata document", async () => {
  const id = "https://app.example.com/client.json";
  const redirect_uri = "https://app.example.com/callback";
  const document = { client_id: id, client_name: "App", redirect_uris: [redirect_uri, redirectUri] };
  const { browser, server } = open({ documents: { fetch: () => Promise.resolve(Response.json(document)) } });
  const page = await browser.open(await toRequest(id, { redirect_uri, response_type: "token" }));
  assertEquals([page.status, page.headers.get("location")], [400, null]);
  assertEquals((await browser.open(await toRequest(id, { redirect_uri }))).status, 200);
  assertEquals((await browser.open(await toRequest(id, { response_type: "token" }))).status, 303);
  await server.close();
});
