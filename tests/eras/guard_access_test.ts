// The events of a call have passed the output guards of its handler for its caller. A token of the same principal with
// other scopes or facts cannot resume the stream of the call.
import { assertEquals } from "@std/assert";
import { type Context, extension, group, type Handler, prompt, resource, tool } from "../../mod.ts";
import { guard, quota } from "../../src/layers/layers.ts";
import { gate, turn, until } from "../support/behaviour.ts";
import {
  begin,
  FULL,
  GUEST,
  NARROW,
  Reading,
  request,
  type Site,
  toRefused,
  UNKNOWN_EVENT,
  VERSIONS,
  withSite,
} from "./session_site.ts";

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
    tool({
      name: "read",
      async run(_, ctx) {
        const [content] = await ctx.readResource("salary://ada");
        await ctx.progress(1);
        return "text" in content ? content.text : "";
      },
    }),
  ];
}

/** The id of the first event. */
const findFirst = ({ text }: Reading) => /^id: ?(.*)$/m.exec(text)?.[1] ?? "";

const call = (id: number, name: string) => request(id, "tools/call", { name, arguments: {} });

/** Waits until the last instance finds the stream. */
async function untilFound(site: Site, place: string): Promise<void> {
  await (await site.sendLast(request(90, "ping", {}), FULL)).text();
  await until(async () => {
    const { status, body } = await site.resume(place, FULL);
    await body?.cancel();
    return status === 200;
  }, "the last instance finds the stream");
}

for (const version of VERSIONS) {
  for (const instances of [1, 2]) {
    const place = `${version}, ${instances === 1 ? "one instance" : "two instances"}`;

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
          await untilFound(site, first);
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
        tool({
          name: "read",
          async run(_, ctx) {
            await ctx.progress(1);
            await pass;
            const [content] = await ctx.readResource("salary://ada");
            return "text" in content ? content.text : "";
          },
        }),
      ];
      await withSite({ version, instances }, makeSlow, async (site) => {
        const { last } = await begin(site, call(2, "read"));
        await untilFound(site, last);
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
