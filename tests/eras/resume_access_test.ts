// Whoever resumes the stream of a call needs the rights that the call's handler asks for: a token of the same principal
// that may not call the handler cannot read its result.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { z } from "zod";
import { type Context, extension, group, type Handler, prompt, resource, tool } from "../../mod.ts";
import { guard, quota } from "../../src/layers/layers.ts";
import type { RefusedEvent } from "../../src/server/call/observer.ts";
import { gate, plainTool, turn, until } from "../support/behaviour.ts";
import {
  begin,
  FULL,
  GUEST,
  type Headers,
  INSUFFICIENT_SCOPE,
  NARROW,
  pay,
  PLACES,
  Reading,
  request,
  type Site,
  toRefused,
  UNKNOWN_EVENT,
  untilFound,
  VERSIONS,
  withSite,
} from "./session_site.ts";
import { toStatus } from "../support/requests.ts";

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

/** Returns a tool with a scope, whose calls end when `pass` resolves. */
function makePaying(pass: Promise<void>) {
  return tool({ name: "pay", scopes: ["pay"], run: async (_, ctx) => (await ctx.progress(1), await pass, "paid") });
}

for (const { version, instances, place } of PLACES) {
  const setting = { version, instances };

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
        return await toStatus(site.resume(opened.last, NARROW)) === 200;
      }, "the stream is resumed");
    });
  });
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
      assertEquals(await toStatus(site.resume(alone.last, NARROW)), 200);
      open();
      await resumes(site, both.last, `"text":"paid"`);
    });
  }
});

// The events of a call have passed the output guards of its handler for its caller. A token of the same principal with
// other scopes or facts cannot resume the stream of the call.

/** Shows salaries only to callers with the scope. */
const hide = guard({
  output: [
    (output, { principal }) =>
      principal?.scopes?.includes("pay")
        ? undefined
        : JSON.parse(JSON.stringify(output).replaceAll("salary 9", "hidden")),
  ],
});

function makeHandlers(): Handler[] {
  const report = async (ctx: Context) => {
    await ctx.progress(1, { message: "salary 9" });
    return "salary 9";
  };
  const passing = extension({ id: "com.example/pass" });
  const outer = passing.layer({ around: (_call, next) => next() });
  return [
    passing,
    tool({ name: "person", use: [hide], run: (_, ctx) => report(ctx) }),
    tool({ name: "wrapped", use: [outer, hide], run: (_, ctx) => report(ctx) }),
    group("staff", [tool({ name: "person", run: (_, ctx) => report(ctx) })], { use: [hide] }),
    prompt({ name: "letter", use: [hide], run: (_, ctx) => report(ctx) }),
    resource({ uri: "salary://ada", name: "salary", use: [hide], read: (_, ctx) => report(ctx) }),
    plainTool("read", async (ctx) => {
      const [content] = await ctx.readResource("salary://ada");
      await ctx.progress(1);
      return "text" in content ? content.text : "";
    }),
  ];
}

/** The id of the first event. */
const findFirst = ({ text }: Reading) => /^id: ?(.*)$/m.exec(text)?.[1] ?? "";

const call = (id: number, name: string) => request(id, "tools/call", { name, arguments: {} });

/** Waits until the last instance, which takes part in the session from its first request, finds the stream. */
async function untilTaken(site: Site, place: string): Promise<void> {
  await (await site.sendLast(request(90, "ping", {}), FULL)).text();
  await untilFound(site, place);
}

for (const { version, instances, place } of PLACES) {
  Deno.test(`a token that is not the caller of a guarded call gets nothing of its stream (${place})`, async () => {
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const unknown = await toRefused(await site.resume(UNKNOWN_EVENT, NARROW));
      const messages = [
        call(2, "person"),
        call(3, "wrapped"),
        call(4, "staff_person"),
        request(5, "prompts/get", { name: "letter" }),
        request(6, "resources/read", { uri: "salary://ada" }),
        call(7, "read"),
      ];
      for (const message of messages) {
        const first = findFirst(await begin(site, message));
        await untilTaken(site, first);
        for (const token of [NARROW, GUEST]) {
          assertEquals(await toRefused(await site.resume(first, token)), unknown, JSON.stringify(message));
        }
        await new Reading(await site.resume(first, FULL)).until("salary 9");
      }
    });
  });

  Deno.test(`a token that has resumed a stream gets nothing after the guards have begun (${place})`, async () => {
    const { pass, open } = gate();
    const makeSlow = () => [
      resource({ uri: "salary://ada", name: "salary", use: [hide], read: () => "salary 9" }),
      plainTool("read", async (ctx) => {
        await ctx.progress(1);
        await pass;
        const [content] = await ctx.readResource("salary://ada");
        return "text" in content ? content.text : "";
      }),
    ];
    await withSite({ version, instances }, makeSlow, async (site) => {
      const { last } = await begin(site, call(2, "read"));
      await untilTaken(site, last);
      const narrow = new Reading(await site.resume(last, NARROW));
      await turn(3);
      open();
      await until(() => narrow.isOver, "the stream of the other token ends");
      await new Reading(await site.resume(last, FULL)).until("salary 9");
      assertEquals(narrow.text.includes("salary 9"), false);
    });
  });

  Deno.test(`a renewed token of the caller resumes the stream of a guarded call (${place})`, async () => {
    const token = { ...FULL, "x-jti": "one" };
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const stream = new Reading(await site.send(call(2, "person"), token));
      await stream.until(`"progress":1`);
      const first = findFirst(stream);
      const renewed = { ...token, "x-jti": "two" };
      await (await site.sendLast(request(90, "ping", {}), renewed)).text();
      await until(async () => {
        const response = await site.resume(first, renewed);
        if (response.status === 200) return await new Reading(response).until("salary 9");
        await response.body?.cancel();
      }, "the stream continues");
    });
  });
}

for (const version of VERSIONS) {
  Deno.test(`a token that is not the caller gets no page of a guarded result from a stream (${version})`, async () => {
    const makeLarge = () => [
      tool({
        name: "large",
        use: [quota({ resultBytes: 2000, onLarge: "link" }), hide],
        run: () => "salary 9\n".repeat(500),
      }),
    ];
    const middleware = [async (ctx: Context, next: () => unknown) => {
      if (ctx.method === "resources/read") await ctx.progress(1);
      return await next();
    }];
    await withSite({ version, instances: 1, middleware: middleware as [] }, makeLarge, async (site) => {
      const found = await (await site.send(call(2, "large"), FULL)).text();
      const uri = /result:[^" ]+/.exec(found)?.[0];
      const stream = await begin(site, request(3, "resources/read", { uri }));
      await stream.until("Page 1 of");
      const unknown = await toRefused(await site.resume(UNKNOWN_EVENT, NARROW));
      assertEquals(await toRefused(await site.resume(findFirst(stream), NARROW)), unknown);
    });
  });
}
