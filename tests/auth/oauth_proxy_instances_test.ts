// Two instances of a server with `oauthProxy` share a Redis server. One of them is killed between the steps of a sign-in,
// and the other one continues.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { type HttpProcess, startHttpProcess } from "../support/http_process.ts";
import { missingRedis, startRedis } from "../support/redis/server.ts";
import {
  authorize,
  Browser,
  call,
  origin,
  redeem,
  refresh,
  register,
  signIn,
  TestProvider,
  toRequest,
} from "./proxy_flow.ts";

/** The provider, as a server. */
class Site {
  readonly provider = new TestProvider();
  /** Requests whose URL contains this text get no response. */
  held?: string;
  /** Resolves when a request is held. */
  arrived = Promise.withResolvers<void>();

  constructor() {
    this.provider.expiresIn = 3600;
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    const url = request.headers.get("x-url") ?? "";
    if (this.held !== undefined && url.includes(this.held)) {
      this.arrived.resolve();
      await new Promise<void>((resolve) => request.signal.addEventListener("abort", () => resolve()));
      return new Response(null, { status: 503 });
    }
    if (url === "https://who.example/") return new Response("yes");
    const body = request.method === "POST" ? await request.text() : undefined;
    return await this.provider.fetch(new Request(url, { method: request.method, headers: request.headers, body }));
  };

  get renewals(): number {
    return this.provider.requests.filter(({ url }) => new URL(url).pathname === "/token").length;
  }
}

/** A process that can be killed and started again. */
class Instance {
  readonly #args: readonly string[];
  #process?: HttpProcess;

  constructor(...args: readonly string[]) {
    this.#args = args;
  }

  async start(): Promise<void> {
    this.#process = await startHttpProcess(new URL("proxy_instance.ts", import.meta.url), ...this.#args);
  }

  async kill(): Promise<void> {
    const process = this.#process;
    this.#process = undefined;
    await process?.[Symbol.asyncDispose]();
  }

  async fetch(request: Request): Promise<Response> {
    if (!this.#process) throw new TypeError("the instance was killed");
    const { pathname, search } = new URL(request.url);
    const body = request.method === "POST" ? await request.text() : undefined;
    const headers = new Headers(request.headers);
    headers.delete("host");
    const init: RequestInit = { method: request.method, headers, body, redirect: "manual" };
    return await fetch(this.#process.origin + pathname + search, init);
  }
}

/** Starts Redis, the provider and two instances. `use` gets a browser for each instance, which share their cookies. */
async function withInstances(
  use: (site: Site, one: Instance, other: Instance, browsers: readonly Browser[]) => Promise<void>,
) {
  await using redis = startRedis();
  const site = new Site();
  const http = await openHttpServer(site.fetch);
  const [one, other] = [1, 2].map(() => new Instance(redis.socket, http.origin));
  try {
    await Promise.all([one.start(), other.start()]);
    const browsers = [one, other].map((each) => new Browser(each));
    await use(site, one, other, browsers);
  } finally {
    await Promise.all([one.kill(), other.kill()]);
    await http.stop();
  }
}

function testInstances(name: string, use: Parameters<typeof withInstances>[0]): void {
  Deno.test({ name, ignore: missingRedis !== undefined, fn: () => withInstances(use) });
}

testInstances(
  "a sign-in continues at another instance after each step at which an instance is killed",
  async (site, one, other, browsers) => {
    const [first, second] = browsers;
    const client = await register(first);
    const opened = await first.open(await toRequest(client));
    assertEquals(opened.status, 200);
    // Reads the whole page before its instance ends.
    const page = new Response(await opened.text(), { headers: opened.headers });

    await one.kill(); // after the consent page
    const consented = await second.answer(page);
    assertEquals(consented.status, 303);
    await one.start();

    await other.kill(); // after the consent
    for (const [name, value] of second.cookies) first.cookies.set(name, value);
    const back = await first.open(site.provider.signIn(new URL(consented.headers.get("location") ?? "")));
    assertEquals(back.status, 303);
    const { searchParams } = new URL(back.headers.get("location") ?? "");
    assertEquals([searchParams.get("state"), searchParams.get("iss")], ["client state", origin]);
    await other.start();

    await one.kill(); // after the callback
    const tokens = await (await redeem(second, client, searchParams.get("code") ?? "")).json();
    assertEquals(tokens.token_type, "Bearer", JSON.stringify(tokens));
    await one.start();

    await other.kill(); // after the code was exchanged
    assertStringIncludes((await call({ browser: first }, tokens.access_token))[1], "provider:7");
    const next = await (await refresh(first, client, tokens.refresh_token)).json();
    assertEquals(next.token_type, "Bearer", JSON.stringify(next));
    await other.start();

    await one.kill(); // before the client got the response of the refresh
    const repeated = await (await refresh(second, client, tokens.refresh_token)).json();
    for (const { access_token } of [tokens, next, repeated]) {
      assertStringIncludes((await call({ browser: second }, access_token))[1], "provider:7");
    }
    assertEquals((await refresh(second, client, next.refresh_token)).status, 200);
  },
);

testInstances(
  "a refresh continues at another instance if an instance is killed while it runs",
  async (site, one, _other, [first, second]) => {
    /** Kills the instance of `first` while a request to the provider is pending, and repeats the refresh at `second`. */
    const loseAndRepeat = async (held: string, client: string, token: string): Promise<void> => {
      site.held = held;
      site.arrived = Promise.withResolvers();
      const lost = refresh(first, client, token).then(() => "answered", () => "lost");
      await site.arrived.promise;
      await one.kill();
      assertEquals(await lost, "lost");
      site.held = undefined;
      const next = await (await refresh(second, client, token)).json();
      assertEquals(next.token_type, "Bearer", JSON.stringify(next));
      assertStringIncludes((await call({ browser: second }, next.access_token))[1], "provider:7");
      await one.start();
    };
    const { client, refresh: token } = await signIn({ browser: first, provider: site.provider });
    await loseAndRepeat("who.example", client, token);
    site.provider.expiresIn = 1;
    const { refresh: expired } = await signIn({ browser: second, provider: site.provider }, client);
    site.provider.expiresIn = 3600;
    const before = site.renewals;
    // The lease of the killed instance must end first.
    await loseAndRepeat("/token", client, expired);
    assertEquals(site.renewals, before + 1);
  },
);

testInstances(
  "a code at both instances has one winner, and a refresh token gets the same tokens at both",
  async (site, _one, _other, browsers) => {
    const [first, second] = browsers;
    const opened = { browser: first, provider: site.provider };
    const client = await register(first);
    for (let round = 0; round < 10; round++) {
      const code = (await authorize(opened, client)).get("code") ?? "";
      const answers = await Promise.all([first, second, first, second].map((each) => redeem(each, client, code)));
      assertEquals(answers.map(({ status }) => status).toSorted(), [200, 400, 400, 400]);
      const [won] = await Promise.all(answers.filter(({ status }) => status === 200).map((each) => each.json()));
      // The second use of a code ends the sign-in.
      for (const browser of browsers) assertEquals((await call({ browser }, won.access_token))[0], 401);
    }
    let { refresh: token } = await signIn(opened, client);
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all([first, second, first, second].map((each) => refresh(each, client, token)));
      assertEquals(answers.map(({ status }) => status), [200, 200, 200, 200], `round ${round}`);
      const found = await Promise.all(answers.map((each) => each.json()));
      for (const browser of browsers) {
        for (const { access_token } of found) assertEquals((await call({ browser }, access_token))[0], 200);
      }
      // Each of the answers can be used for the next refresh.
      token = found[round % 4].refresh_token;
    }
  },
);

testInstances(
  "two instances never renew the provider's tokens with the same token",
  async (site, _one, _other, browsers) => {
    const [first, second] = browsers;
    site.provider.expiresIn = 1;
    const { access, client, refresh: token } = await signIn({ browser: first, provider: site.provider });
    site.provider.expiresIn = 3600;
    const before = site.renewals;
    const calls = Array.from({ length: 8 }, (_, at) => call({ browser: browsers[at % 2] }, access));
    const refreshes = [first, second].map((each) => refresh(each, client, token));
    for (const [, text] of await Promise.all(calls)) assertStringIncludes(text, "provider:7");
    for (const { status } of await Promise.all(refreshes)) assertEquals(status, 200);
    // Usually once. The provider ends the sign-in if two renewals use the same token.
    const renewals = site.renewals - before;
    assert(renewals === 1 || renewals === 2, `${renewals} renewals`);
    for (const browser of browsers) assertStringIncludes((await call({ browser }, access))[1], "provider:7");
    assertEquals(site.renewals, before + renewals);
  },
);
