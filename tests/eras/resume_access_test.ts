// Whoever resumes the stream of a call needs the rights that the call's handler asks for: a token of the same principal
// that may not call the handler cannot read its result.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { type Context, prompt, resource, tool } from "../../mod.ts";
import type { RefusedEvent } from "../../src/server/call/observer.ts";
import { z } from "zod";
import { gate, until } from "../support/behaviour.ts";
import {
  begin,
  FULL,
  GUEST,
  type Headers,
  INSUFFICIENT_SCOPE,
  NARROW,
  pay,
  Reading,
  request,
  type Site,
  toRefused,
  UNKNOWN_EVENT,
  VERSIONS,
  withSite,
} from "./session_site.ts";

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
