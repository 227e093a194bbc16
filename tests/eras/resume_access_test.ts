// Whoever resumes the stream of a call needs the rights that the call's handler asks for: a token of the same principal
// that may not call the handler cannot read its result.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { type Context, createServer, type Handler, prompt, resource, type Server, tool } from "../../mod.ts";
import type { Observer, RefusedEvent } from "../../src/core/call/observer.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { z } from "zod";
import { gate, LEGACY_VERSIONS, until } from "../support/behaviour.ts";

const VERSIONS = LEGACY_VERSIONS.filter((version) => version > "2025");
const UNKNOWN_EVENT = "01234567-0123_1";
const INSUFFICIENT_SCOPE = -31_403;

type Headers = Readonly<Record<string, string>>;

/** A token with all rights, and tokens of the same principal with fewer rights. */
const FULL: Headers = { "x-scopes": "pay", "x-staff": "yes" };
const NARROW: Headers = { "x-scopes": "mail", "x-staff": "yes" };
const GUEST: Headers = { "x-scopes": "pay" };

/** The response to a refused request. */
interface Refused {
  readonly status: number;
  readonly challenge: string | null;
  readonly error: unknown;
}

/** A session on one or several instances, which share a store. */
interface Site {
  /** Sends a message to the first instance. */
  send(message: object | object[], token: Headers): Promise<Response>;
  /** Opens a standalone stream on the first instance. */
  open(token: Headers): Promise<Response>;
  /** Resumes a stream on the last instance. */
  resume(lastEvent: string, token: Headers): Promise<Response>;
  readonly first: Server;
  readonly last: Server;
}

interface Setting {
  readonly version: string;
  readonly instances: number;
  readonly observer?: Observer;
}

async function withSite(
  { version, instances, observer = { fault() {} } }: Setting,
  makeHandlers: () => readonly Handler[],
  use: (site: Site) => Promise<void>,
): Promise<void> {
  const store = memoryStore();
  const servers = Array.from({ length: instances }, () =>
    createServer({
      name: "bank",
      version: "1.0.0",
      handlers: makeHandlers(),
      observer,
      auth: ({ headers }: Request) => ({
        id: "ada",
        scopes: (headers.get("x-scopes") ?? "").split(" ").filter(Boolean),
        staff: headers.has("x-staff"),
      }),
      ...instances > 1 ? { store, secret: "a secret of at least thirty-two characters" } : {},
    }));
  let session = "";
  const fetch = async (server: Server, token: Headers, more: Headers, message?: object) =>
    await server.fetch(
      new Request("http://localhost/mcp", {
        method: message ? "POST" : "GET",
        headers: {
          "content-type": "application/json",
          accept: message ? "application/json, text/event-stream" : "text/event-stream",
          ...session ? { "mcp-session-id": session, "mcp-protocol-version": version } : {},
          ...token,
          ...more,
        },
        body: message && JSON.stringify(message),
      }),
    );
  const [first, last] = [servers[0], servers[instances - 1]];
  const site: Site = {
    first,
    last,
    send: (message, token) => fetch(first, token, {}, message),
    open: (token) => fetch(first, token, {}),
    resume: (lastEvent, token) => fetch(last, token, { "last-event-id": lastEvent }),
  };
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: "c", version: "1" } };
  const hello = await site.send({ jsonrpc: "2.0", id: 1, method: "initialize", params }, FULL);
  await hello.text();
  session = hello.headers.get("mcp-session-id") ?? "";
  await use(site);
  for (const server of servers) await server.close();
}

const request = (id: number, method: string, params: object) => ({
  jsonrpc: "2.0",
  id,
  method,
  params: { ...params, _meta: { progressToken: "p" } },
});
const pay = request(2, "tools/call", { name: "pay", arguments: {} });

/** A stream that the test reads. */
class Reading {
  text = "";
  isOver = false;

  constructor({ body }: Response) {
    const read = async () => {
      for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) this.text += part;
    };
    read().finally(() => this.isOver = true);
  }

  async until(part: string): Promise<string> {
    await until(() => this.text.includes(part), `the text ${part}`);
    return this.text;
  }

  /** The id of the last event. */
  get last(): string {
    return [...this.text.matchAll(/^id: ?(.*)$/gm)].at(-1)?.[1] ?? "";
  }
}

/** Sends a request that reports progress, and returns its stream after the first event. */
async function begin(site: Site, message: object | object[]): Promise<Reading> {
  const stream = new Reading(await site.send(message, FULL));
  await stream.until(`"progress":1`);
  return stream;
}

async function toRefused(response: Response): Promise<Refused> {
  const { status, headers } = response;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream");
  assert(!isStream, "the server has opened a stream");
  return { status, challenge: headers.get("www-authenticate"), error: JSON.parse(await response.text()).error };
}

async function refuses(site: Site, lastEvent: string, token: Headers): Promise<void> {
  const unknown = await toRefused(await site.resume(UNKNOWN_EVENT, token));
  assertEquals(unknown.status, 400);
  assertEquals(await toRefused(await site.resume(lastEvent, token)), unknown);
}

/** Resumes a stream with all rights until `part` has arrived. */
async function resumes(site: Site, lastEvent: string, part: string): Promise<void> {
  const response = await site.resume(lastEvent, FULL);
  assertEquals(response.status, 200);
  await new Reading(response).until(part);
}

/** Waits until the last instance finds the stream, which the first instance writes to the store in the background. */
async function untilFound(site: Site, lastEvent: string): Promise<void> {
  await until(async () => {
    const { status, body } = await site.resume(lastEvent, FULL);
    await body?.cancel();
    return status === 200;
  }, "the last instance finds the stream");
}

/** Returns a tool with a scope, whose calls end when `pass` resolves. */
function makePaying(pass: Promise<void>) {
  return tool({ name: "pay", scopes: ["pay"], run: async (_, ctx) => (await ctx.progress(1), await pass, "paid") });
}

for (const version of VERSIONS) {
  for (const instances of [1, 2]) {
    const setting = { version, instances };
    const place = `${version}, ${instances === 1 ? "one instance" : "two instances"}`;

    Deno.test(`a token without the scopes of a tool cannot resume the tool's stream (${place})`, async () => {
      const { pass, open } = gate();
      const makeHandlers = () => [makePaying(pass)];
      await withSite(setting, makeHandlers, async (site) => {
        const stream = await begin(site, pay);
        const { last } = stream;
        await untilFound(site, last);
        const called = await toRefused(await site.send({ ...pay, id: 9 }, NARROW));
        assertEquals(called.status, 403);
        assertStringIncludes(called.challenge ?? "", "insufficient_scope");
        const expected = { code: INSUFFICIENT_SCOPE, data: { scopes: ["pay"] } };
        const check = async () => {
          const refused = await toRefused(await site.resume(last, NARROW));
          assertEquals({ ...refused, error: undefined }, { ...called, error: undefined });
          const { code, data } = Object(refused.error);
          assertEquals({ code, data }, expected);
        };
        await check();
        open();
        await resumes(site, last, `"text":"paid"`);
        await check();
      });
    });

    Deno.test(`a caller from whom a tool is hidden cannot resume the tool's stream (${place})`, async () => {
      const { pass, open } = gate();
      const run = async (_: unknown, ctx: Context) => (await ctx.progress(1), await pass, "paid");
      const makeHandlers = () => [
        tool({ name: "pay", allow: ({ principal }) => principal?.staff === true, run }),
        tool({
          name: "vary",
          async forCaller({ principal }) {
            await Promise.resolve();
            if (principal?.staff !== true) throw new Error("not for guests");
            return {};
          },
          run,
        }),
      ];
      await withSite(setting, makeHandlers, async (site) => {
        for (const [id, name] of ["pay", "vary"].entries()) {
          const stream = await begin(site, request(id + 2, "tools/call", { name, arguments: {} }));
          const { last } = stream;
          await untilFound(site, last);
          await refuses(site, last, GUEST);
          if (name !== "vary") continue;
          open();
          await resumes(site, last, `"text":"paid"`);
          await refuses(site, last, GUEST);
        }
      });
    });

    Deno.test(`while a tool is disabled or removed, nobody resumes its streams (${place})`, async () => {
      const { pass, open } = gate();
      const makeHandlers = () => [
        tool({ name: "pay", run: async (_, ctx) => (await ctx.progress(1), await pass, "paid") }),
        tool({ name: "other", run: () => "" }),
      ];
      await withSite(setting, makeHandlers, async (site) => {
        const { last } = await begin(site, pay);
        await untilFound(site, last);
        const { handlers } = site.last;
        handlers.disable({ tool: "pay" });
        await refuses(site, last, FULL);
        handlers.enable({ tool: "pay" });
        await untilFound(site, last);
        const removed = handlers.get("tool", "pay");
        handlers.remove(removed);
        await refuses(site, last, FULL);
        open();
        if (removed) handlers.add(removed);
        await resumes(site, last, `"text":"paid"`);
      });
    });

    Deno.test(`a stream of a prompt, a resource or a completion needs the rights too (${place})`, async () => {
      const { pass, open } = gate();
      const wait = async (ctx: Context) => {
        await ctx.progress(1);
        await pass;
        return "paid";
      };
      const makeHandlers = () => [
        prompt({
          name: "letter",
          scopes: ["pay"],
          input: z.object({ to: z.string().optional() }),
          complete: { to: async (_value, _others, ctx) => [await wait(ctx)] },
          run: (_, ctx) => wait(ctx),
        }),
        resource({ uri: "bill://{id}", name: "bill", scopes: ["pay"], read: (_, ctx) => wait(ctx) }),
      ];
      const messages = [
        request(2, "prompts/get", { name: "letter" }),
        request(3, "resources/read", { uri: "bill://1" }),
        request(4, "completion/complete", {
          ref: { type: "ref/prompt", name: "letter" },
          argument: { name: "to", value: "" },
        }),
      ];
      await withSite(setting, makeHandlers, async (site) => {
        for (const message of messages) {
          const { last } = await begin(site, message);
          await untilFound(site, last);
          const { status, error } = await toRefused(await site.resume(last, NARROW));
          assertEquals([status, Object(error).code], [403, INSUFFICIENT_SCOPE], message.method);
          if (message !== messages.at(-1)) continue;
          open();
          await resumes(site, last, "paid");
        }
      });
    });

    Deno.test(`a refused token does not close the connection of a stream's reader (${place})`, async () => {
      const { pass, open } = gate();
      const makeHandlers = () => [makePaying(pass)];
      await withSite(setting, makeHandlers, async (site) => {
        const { last } = await begin(site, pay);
        await untilFound(site, last);
        const reader = new Reading(await site.resume(last, FULL));
        assertEquals((await toRefused(await site.resume(last, NARROW))).status, 403);
        open();
        await reader.until(`"text":"paid"`);
      });
    });

    Deno.test(`a standalone stream is resumed with any token of the principal (${place})`, async () => {
      const makeHandlers = () => [tool({ name: "pay", scopes: ["pay"], run: () => "" })];
      await withSite(setting, makeHandlers, async (site) => {
        const opened = new Reading(await site.open(FULL));
        await until(() => opened.isOver || site.first.stats().streams > 0, "the stream is open");
        site.first.listChanged("tools");
        await opened.until("list_changed");
        await until(async () => {
          const { status, body } = await site.resume(opened.last, NARROW);
          await body?.cancel();
          return status === 200;
        }, "the stream is resumed");
      });
    });
  }
}

Deno.test("a stream that ends while the rights are checked is resumed, and the observer gets refusals", async () => {
  for (const instances of [1, 2]) {
    const [work, check] = [gate(), gate()];
    let isSlow = false;
    const refused: unknown[] = [];
    const makeHandlers = () => [
      tool({
        name: "pay",
        scopes: ["pay"],
        async allow() {
          if (isSlow) await check.pass;
          return true;
        },
        run: async (_, ctx) => (await ctx.progress(1), await work.pass, "paid"),
      }),
    ];
    const observer = {
      refused: ({ status, reason, code }: RefusedEvent) => void refused.push([status, reason, code]),
    };
    await withSite({ version: "2025-11-25", instances, observer }, makeHandlers, async (site) => {
      const stream = await begin(site, pay);
      const { last } = stream;
      await untilFound(site, last);
      refused.length = 0;
      isSlow = true;
      const resuming = site.resume(last, FULL);
      const refusing = site.resume(last, NARROW);
      work.open();
      await until(() => site.first.stats().running === 0, "the call has ended");
      check.open();
      await new Reading(await resuming).until(`"text":"paid"`);
      assertEquals((await toRefused(await refusing)).status, 403);
      assertEquals(refused, [[403, "scope", INSUFFICIENT_SCOPE]]);
    });
  }
});

Deno.test("a stream whose URI is too long for the store is resumed only on its own instance", async () => {
  for (const instances of [1, 2]) {
    const makeHandlers = () => [
      resource({ uri: "bill://{id}", name: "bill", read: async (_, ctx) => (await ctx.progress(1), "paid") }),
    ];
    await withSite({ version: "2025-11-25", instances }, makeHandlers, async (site) => {
      const [short, long] = [10, 10_000].map((length) =>
        request(2, "resources/read", { uri: `bill://${"1".repeat(length)}` })
      );
      // The first instance writes its streams to the store in the order of their first events.
      const starts: string[] = [];
      for (const message of [long, short]) starts.push((await begin(site, message)).last.replace(/\d+$/, "0"));
      await untilFound(site, starts[1]);
      if (instances === 1) await untilFound(site, starts[0]);
      else await refuses(site, starts[0], FULL);
    });
  }
});

Deno.test("the stream of a batch needs the rights of all its calls", async () => {
  for (const instances of [1, 2]) {
    const { pass, open } = gate();
    const run = async (_: unknown, ctx: Context) => (await ctx.progress(1), await pass, "paid");
    const makeHandlers = () => [tool({ name: "pay", scopes: ["pay"], run }), tool({ name: "free", run })];
    await withSite({ version: "2025-03-26", instances }, makeHandlers, async (site) => {
      const free = request(3, "tools/call", { name: "free" });
      const ping = { jsonrpc: "2.0", id: 4, method: "ping" };
      const [both, alone] = [await begin(site, [free, pay, ping]), await begin(site, [{ ...free, id: 5 }])];
      for (const { last } of [both, alone]) await untilFound(site, last);
      assertEquals((await toRefused(await site.resume(both.last, NARROW))).status, 403);
      const { status, body } = await site.resume(alone.last, NARROW);
      await body?.cancel();
      assertEquals(status, 200);
      open();
      await resumes(site, both.last, `"text":"paid"`);
    });
  }
});
