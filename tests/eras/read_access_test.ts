// A handler can read resources for its caller. Whoever resumes the stream of such a call, or answers its questions, needs
// the rights to these resources too.
import { assertEquals } from "@std/assert";
import { type Context, group, type Handler, prompt, resource, tool } from "../../mod.ts";
import { z } from "zod";
import { gate, plainTool, turn, until } from "../support/behaviour.ts";
import {
  begin,
  FULL,
  GUEST,
  type Headers,
  INSUFFICIENT_SCOPE,
  NARROW,
  PLACES,
  Reading,
  request,
  type Site,
  toRefused,
  UNKNOWN_EVENT,
  untilFound,
  withSite,
} from "./session_site.ts";

const FORM = { type: "object", properties: {} } as const;
const isStaff = ({ principal }: Context) => principal?.staff === true;

/** Handlers without rules that read resources with rules, which ask before they answer. */
function makeReading() {
  const answers: string[] = [];
  const open = async (ctx: Context) => {
    const { action } = await ctx.elicit("open", { message: "Open?", schema: FORM });
    answers.push(action);
    return action === "accept" ? "the secret" : "closed";
  };
  const read = async (ctx: Context, uri: string) => {
    const [content] = await ctx.readResource(uri);
    return "text" in content ? content.text ?? "" : "";
  };
  const makeHandlers = (): Handler[] => [
    tool({ name: "read", input: z.object({ uri: z.string() }), run: ({ uri }, ctx) => read(ctx, uri) }),
    prompt({ name: "letter", run: (_, ctx) => read(ctx, "vault://one") }),
    resource({ uri: "note://one", name: "note", read: (_, ctx) => read(ctx, "vault://one") }),
    resource({ uri: "vault://one", name: "vault", scopes: ["pay"], read: (_, ctx) => open(ctx) }),
    resource({ uri: "safe://{id}", name: "safe", scopes: ["pay"], read: (_, ctx) => open(ctx) }),
    resource({
      uri: "drawer://{id}",
      name: "drawer",
      allow: (ctx, subject) => subject?.id !== "1" || isStaff(ctx),
      read: (_, ctx) => open(ctx),
    }),
    group("staff", [resource({ uri: "room://one", name: "room", read: (_, ctx) => open(ctx) })], { allow: isStaff }),
  ];
  return { answers, makeHandlers };
}

/** A tool without rules that reads more resources than the list of a call holds, before it asks. */
function makeManyReads() {
  const answers: string[] = [];
  const makeHandlers = () => [
    plainTool("read", async (ctx) => {
      for (let id = 0; id < 40; id++) await ctx.readResource(`safe://${id}`);
      const { action } = await ctx.elicit("open", { message: "Open?", schema: FORM });
      answers.push(action);
      return "the secret";
    }),
    resource({ uri: "safe://{id}", name: "safe", scopes: ["pay"], read: () => "x" }),
  ];
  return { answers, makeHandlers };
}

const call = (id: number, uri: string) => request(id, "tools/call", { name: "read", arguments: { uri } });
const accept = (id: unknown) => ({ jsonrpc: "2.0", id, result: { action: "accept", content: {} } });

async function ask(site: Site, message: object, token = FULL) {
  const stream = new Reading(await site.send(message, token));
  await stream.until("elicitation/create");
  // The last instance takes part in the session from its first request.
  await (await site.sendLast(request(90, "ping", {}), token)).text();
  const id = /"id":"([^"]+)","method":"elicitation/.exec(stream.text)?.[1] ?? "";
  return { stream, id, place: stream.last };
}

async function takes(site: Site, place: string, token: Headers, part: string): Promise<void> {
  const response = await site.resume(place, token);
  assertEquals(response.status, 200);
  await new Reading(response).until(part);
}

for (const { version, instances, place } of PLACES) {
  Deno.test(`a token without the rights to a resource gets nothing of a call that reads it (${place})`, async () => {
    const { answers, makeHandlers } = makeReading();
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const cases: [object, Headers][] = [
        [call(2, "vault://one"), NARROW],
        [call(3, "safe://7"), NARROW],
        [call(4, "note://one"), NARROW],
        [request(5, "prompts/get", { name: "letter" }), NARROW],
        [request(6, "resources/read", { uri: "note://one" }), NARROW],
        [call(7, "drawer://1"), GUEST],
        [call(8, "room://one"), GUEST],
      ];
      for (const [message, token] of cases) {
        const before = answers.length;
        const { id, place } = await ask(site, message);
        await untilFound(site, place);
        const isHidden = token === GUEST;
        const answered = await site.sendLast(accept(id), token);
        assertEquals([answered.status, answers.length], [isHidden ? 202 : 403, before]);
        await answered.body?.cancel();
        const check = async () => {
          const refused = await toRefused(await site.resume(place, token));
          if (isHidden) assertEquals(refused, await toRefused(await site.resume(UNKNOWN_EVENT, token)));
          else assertEquals([refused.status, Object(refused.error).code], [403, INSUFFICIENT_SCOPE]);
        };
        await check();
        assertEquals((await site.sendLast(accept(id), FULL)).status, 202);
        await takes(site, place, FULL, "the secret");
        await check();
      }
    });
  });

  Deno.test(`a token with the rights to the resources takes part in the call (${place})`, async () => {
    const { makeHandlers } = makeReading();
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const { id, place } = await ask(site, call(2, "drawer://2"));
      await untilFound(site, place);
      assertEquals((await site.sendLast(accept(id), GUEST)).status, 202);
      await takes(site, place, GUEST, "the secret");
    });
  });

  Deno.test(`a token that has resumed a stream gets nothing after the handler reads a resource (${place})`, async () => {
    const { pass, open } = gate();
    const makeHandlers = () => [
      plainTool("read", async (ctx) => {
        await ctx.progress(1);
        await pass;
        const [content] = await ctx.readResource("vault://one");
        return "text" in content ? content.text : "";
      }),
      resource({ uri: "vault://one", name: "vault", scopes: ["pay"], read: () => "the secret" }),
    ];
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const stream = await begin(site, request(2, "tools/call", { name: "read", arguments: {} }));
      const { last } = stream;
      await untilFound(site, last);
      const narrow = new Reading(await site.resume(last, NARROW));
      await turn(3);
      open();
      await until(() => narrow.isOver, "the stream of the other token ends");
      await takes(site, last, FULL, "the secret");
      assertEquals(narrow.text.includes("the secret"), false);
      assertEquals((await toRefused(await site.resume(last, NARROW))).status, 403);
    });
  });

  Deno.test(`after many reads, only the same caller takes part in the call (${place})`, async () => {
    const { answers, makeHandlers } = makeManyReads();
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const { id, place } = await ask(site, request(2, "tools/call", { name: "read", arguments: {} }));
      await untilFound(site, place);
      const other = { ...FULL, "x-scopes": "pay mail" };
      const unknown = await toRefused(await site.resume(UNKNOWN_EVENT, other));
      assertEquals(await toRefused(await site.resume(place, other)), unknown);
      await (await site.sendLast(accept(id), other)).body?.cancel();
      assertEquals(answers, []);
      assertEquals((await site.send(accept(id), FULL)).status, 202);
      await takes(site, place, FULL, "the secret");
    });
  });

  Deno.test(`after many reads of a caller that cannot be compared, no caller takes part in the call (${place})`, async () => {
    const { answers, makeHandlers } = makeManyReads();
    await withSite({ version, instances }, makeHandlers, async (site) => {
      const asking = { ...FULL, "x-odd": "yes" };
      const { id, place } = await ask(site, request(2, "tools/call", { name: "read", arguments: {} }), asking);
      for (const other of [asking, FULL, { ...GUEST, "x-odd": "yes" }]) {
        assertEquals((await toRefused(await site.resume(place, other))).status, 400);
        await (await site.sendLast(accept(id), other)).body?.cancel();
      }
      assertEquals(answers, []);
    });
  });
}
