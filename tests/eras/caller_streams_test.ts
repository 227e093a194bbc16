// What a stream carries can depend on its caller, such as a list or a notification about a hidden resource. Another
// token of the same principal neither gets it nor resumes the stream.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { createServer, type Middleware, type Principal, prompt, resource, tool } from "../../mod.ts";
import { extension } from "../../src/server/handlers/extension.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { gate, until } from "../support/behaviour.ts";
import { wrapEngine } from "../support/engines.ts";
import { testLimits } from "../support/limits.ts";
import { toStatus } from "../support/requests.ts";
import { toHello, toSession, toSessionRequest } from "../support/sessions.ts";
import { FULL, GUEST, Reading, request, type Site, toRefused, VERSIONS, withSite } from "./session_site.ts";

const RENEWED = { ...FULL, "x-jti": "2" };
const TOKEN = { ...FULL, "x-jti": "1" };
const isStaff = ({ principal }: { readonly principal?: Principal }) => principal?.staff === true;

/** Middleware that opens the stream of each call, and lets the call end when `pass` resolves. */
function holdUntil(pass: Promise<void>): Middleware {
  return async (ctx, next) => {
    if (ctx.method === "initialize") return await next();
    await ctx.progress(1);
    await pass;
    return await next();
  };
}

async function resumes(site: Site, lastEvent: string, token: Readonly<Record<string, string>>): Promise<boolean> {
  return await toStatus(site.resume(lastEvent, token)) === 200;
}

for (const instances of [1, 2]) {
  const place = instances === 1 ? "one instance" : "two instances";

  for (const version of VERSIONS) {
    Deno.test(`only the caller of a list resumes its stream (${version}, ${place})`, async () => {
      const { pass, open } = gate();
      const makeHandlers = () => [
        prompt({ name: "plain", run: () => "" }),
        prompt({ name: "board-letter", allow: isStaff, run: () => "" }),
        extension({
          id: "com.example/desk",
          undeclared: true,
          sessions: true,
          methods: { "desk/list": { run: (_, ctx) => ({ desks: [isStaff(ctx) ? "board-desk" : "desk"] }) } },
        }),
      ];
      await withSite({ version, instances, middleware: [holdUntil(pass)] }, makeHandlers, async (site) => {
        const messages = [request(2, "prompts/list", {}), request(3, "desk/list", {})];
        const places: string[] = [];
        for (const message of messages) {
          const stream = new Reading(await site.send(message, TOKEN));
          await stream.until(`"progress":1`);
          const { last } = stream;
          places.push(last);
          await until(() => resumes(site, last, TOKEN), "the last instance finds the stream");
          for (const other of [GUEST, { ...GUEST, "x-jti": "1" }, FULL, { ...TOKEN, "x-team": "blue" }]) {
            assertEquals((await toRefused(await site.resume(last, other))).status, 400);
          }
        }
        open();
        for (const [index, last] of places.entries()) {
          await new Reading(await site.resume(last, RENEWED)).until(["board-letter", "board-desk"][index]);
          assertEquals((await toRefused(await site.resume(last, GUEST))).status, 400);
        }
      });
    });
  }

  Deno.test(`a batch with a list is resumed only by its caller, and other batches by any token (${place})`, async () => {
    const { pass, open } = gate();
    const run = async () => (await pass, "done");
    const makeHandlers = () => [
      tool({ name: "slow", run }),
      resource({ uri: "board://minutes", name: "minutes", allow: isStaff, read: () => "" }),
    ];
    const slow = (id: number) => request(id, "tools/call", { name: "slow", arguments: {} });
    const level = { jsonrpc: "2.0", id: 8, method: "logging/setLevel", params: { level: "error" } };
    await withSite(
      { version: "2025-03-26", instances, middleware: [holdUntil(Promise.resolve())] },
      makeHandlers,
      async (site) => {
        const listing = new Reading(await site.send([slow(2), request(3, "resources/list", {})], TOKEN));
        const calling = new Reading(await site.send([slow(4), level], TOKEN));
        for (const each of [listing, calling]) {
          await each.until(`"progress":1`);
          const { last } = each;
          await until(() => resumes(site, last, TOKEN), "the last instance finds the stream");
        }
        assertEquals((await toRefused(await site.resume(listing.last, GUEST))).status, 400);
        assert(await resumes(site, calling.last, GUEST));
        open();
        const text = await new Reading(await site.resume(listing.last, RENEWED)).until("done");
        assertStringIncludes(text, "board://minutes");
      },
    );
  });

  Deno.test(`the caller that reads the standalone stream decides about its notifications (${place})`, async () => {
    const makeHandlers = () => [
      resource({ uri: "board://minutes", name: "minutes", allow: isStaff, read: () => "" }),
      resource({ uri: "lobby://news", name: "news", read: () => "" }),
      resource({ uri: "slow://x", name: "slow", read: () => "", allow: async (ctx) => (await null, isStaff(ctx)) }),
    ];
    await withSite({ version: "2025-11-25", instances }, makeHandlers, async (site) => {
      const subscribe = async (uri: string) => {
        await (await site.sendLast(request(2, "resources/subscribe", { uri }), TOKEN)).text();
      };
      for (const uri of ["board://minutes", "lobby://news", "slow://x"]) await subscribe(uri);
      const changeAll = () => {
        for (const uri of ["board://minutes", "slow://x", "lobby://news"]) site.last.resourceUpdated(uri);
        site.last.log.error("for the board", { to: isStaff });
      };
      const narrow = new Reading(await site.openLast(GUEST));
      await narrow.until("id:");
      await (await site.sendLast(request(3, "ping", {}), TOKEN)).text();
      changeAll();
      await narrow.until("lobby://news");
      // The full token opens a stream of its own, and then the narrow token sends the latest request.
      const full = new Reading(await site.openLast(TOKEN));
      await full.until("id:");
      await (await site.sendLast(request(4, "ping", {}), GUEST)).text();
      changeAll();
      await full.until("lobby://news");
      await full.until("slow://x");
      assertStringIncludes(full.text, "board://minutes");
      assertStringIncludes(full.text, "for the board");
      for (const hidden of ["board://", "slow://", "for the board"]) assert(!narrow.text.includes(hidden), hidden);
    });
  });

  Deno.test(`the kept events of a standalone stream go only to their caller (${place})`, async () => {
    const makeHandlers = () => [
      resource({ uri: "board://minutes", name: "minutes", allow: isStaff, read: () => "" }),
      resource({ uri: "lobby://news", name: "news", read: () => "" }),
    ];
    await withSite({ version: "2025-11-25", instances }, makeHandlers, async (site) => {
      for (const uri of ["board://minutes", "lobby://news"]) {
        await (await site.send(request(2, "resources/subscribe", { uri }), TOKEN)).text();
        await (await site.sendLast(request(3, "ping", {}), TOKEN)).text();
      }
      const opened = await site.open(TOKEN);
      const reader = opened.body?.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      const readUntil = async (part: string) => {
        while (!text.includes(part)) text += (await reader?.read())?.value ?? "";
      };
      await readUntil("id:");
      site.first.resourceUpdated("board://minutes");
      await readUntil("board://minutes");
      const start = /^id: ?(.*)$/m.exec(text)?.[1] ?? "";
      const last = [...text.matchAll(/^id: ?(.*)$/gm)].at(-1)?.[1] ?? "";
      await reader?.cancel();
      await until(() => site.first.stats().streams === 0, "the connection is closed");
      site.first.resourceUpdated("board://minutes");
      await until(() => resumes(site, last, TOKEN), "the last instance finds the stream");
      await until(() => site.last.stats().streams === 0, "the connection is closed");
      for (const lastEvent of [start, last]) {
        const narrow = new Reading(await site.resume(lastEvent, GUEST));
        await narrow.until("id:");
        site.last.resourceUpdated("lobby://news");
        await narrow.until("lobby://news");
        assert(!narrow.text.includes("board://"));
      }
      await new Reading(await site.resume(start, RENEWED)).until("board://minutes");
    });
  });
}

Deno.test("a principal that is not plain data resumes the streams of calls, but no lists", async () => {
  const { pass, open } = gate();
  await using server = createServer({
    name: "bank",
    version: "1.0.0",
    handlers: [tool({ name: "slow", run: () => "done" }), prompt({ name: "plain", run: () => "" })],
    use: [holdUntil(pass)],
    auth: () => ({ id: "ada", may: () => true }),
  });
  let session: Record<string, string> = {};
  const send = async (message: object | undefined, more: Record<string, string> = {}) =>
    await server.fetch(toSessionRequest(message, { ...session, ...more }));
  open();
  session = { "mcp-session-id": await toSession(await send(toHello())), "mcp-protocol-version": "2025-11-25" };
  for (const [method, status] of [["tools/call", 200], ["prompts/list", 400]] as const) {
    const stream = new Reading(await send(request(2, method, { name: "slow" })));
    await until(() => stream.isOver, "the call has ended");
    const first = /^id: ?(.*)$/m.exec(stream.text)?.[1] ?? "";
    assertEquals(await toStatus(send(undefined, { "last-event-id": first })), status, method);
  }
});

Deno.test("a client that opens its standalone stream with two tokens in turn is charged for each stored stream", async () => {
  const logs = new Set<unknown>();
  const reached: string[] = [];
  const store = customStore(async () =>
    wrapEngine(await memoryStore()[INTERNALS].connect(), ({ name, args, run }) => {
      if (name === "append") logs.add(args[0]);
      return run();
    })
  );
  await using server = createServer({
    name: "streams",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    handlers: [tool({ name: "fine", run: () => "" })],
    limits: testLimits({ replay: { bytes: 10_000 } }),
    observer: { limit: ({ limit }) => void reached.push(limit) },
    store,
  });
  const send = (scope: string, session?: string, message?: object) =>
    server.fetch(toSessionRequest(message, session ? { "mcp-session-id": session } : {}), {
      principal: { id: "ada", scopes: [scope] },
    });
  const session = await toSession(await send("a", undefined, toHello()));
  const open = async (scope: string) => {
    const { status, body } = await send(scope, session);
    assertEquals(status, 200);
    await body?.cancel();
  };
  for (let i = 0; i < 100; i++) await open(i % 2 ? "a" : "b");
  await until(() => reached.includes("replay.bytes"), "the limit");
  assert(logs.size < 50, `${logs.size} logs`);
});
