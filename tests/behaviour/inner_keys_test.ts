// The keys of questions and of values of `once` in inner calls: no other key equals them, whatever a client chooses.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, resource, tool } from "../../mod.ts";
import { behaviour, textOf } from "../support/behaviour.ts";

const schema = z.object({ text: z.string() });

/** A form whose answer the client derives from its message. */
const ask = async (ctx: Context, key: string, message: string) => {
  const { content } = await ctx.elicit(key, { message, schema });
  return content?.text;
};

const echo = ({ message }: { readonly message: string }) => ({ action: "accept", content: { text: message } }) as const;

/** Keys that join the parts of keys in different ways. */
const JOINED = ["a b", "a\tb", "a\t b", "a\t\t b", 'inner "a" b', 'inner "a"\t b', 'inner "a"\t\t b', "inner a\t b"];

behaviour("no key of a handler equals a key of its inner calls", async (connect) => {
  const inner = tool({
    name: "inner",
    run: async (_input, ctx) => JSON.stringify([await ctx.once("b", () => "inner"), await ask(ctx, "b", "inner?")]),
  });
  const outer = tool({
    name: "outer",
    input: z.object({ key: z.string() }),
    run: async ({ key }, ctx) => {
      const own = await ctx.once(key, () => "outer");
      const [answer, called] = await Promise.all([
        ask(ctx, key, "outer?"),
        ctx.callTool(inner, {}, { key: "a" }),
      ]);
      return JSON.stringify([own, answer, textOf(called)]);
    },
  });
  const { client } = await connect({ handlers: [inner, outer] }, { onElicit: echo });
  for (const key of JOINED) {
    const result = JSON.parse(textOf(await client.callTool("outer", { key })));
    assertEquals(result, ["outer", "outer?", '["inner","inner?"]'], JSON.stringify(key));
  }
});

behaviour("no key of an inner call equals a key with which another inner call makes an inner call", async (connect) => {
  const value = tool({
    name: "value",
    input: z.object({ at: z.string(), key: z.string() }),
    run: async ({ at, key }, ctx) => JSON.stringify([await ctx.once(key, () => at), await ask(ctx, key, at)]),
  });
  const nested = tool({
    name: "nested",
    input: z.object({ key: z.string() }),
    run: async ({ key }, ctx) => textOf(await ctx.callTool(value, { at: "nested", key: "c" }, { key })),
  });
  const outer = tool({
    name: "outer",
    run: async (_input, ctx) => {
      const deep = ctx.callTool(nested, { key: "b" }, { key: "a" });
      const direct = JOINED.map((key) => ctx.callTool(value, { at: key, key: "c" }, { key }));
      return JSON.stringify((await Promise.all([deep, ...direct])).map(textOf));
    },
  });
  const { client } = await connect({ handlers: [value, nested, outer] }, { onElicit: echo });
  const texts: string[] = JSON.parse(textOf(await client.callTool("outer")));
  assertEquals(texts.map((text) => JSON.parse(text)), ["nested", ...JOINED].map((at) => [at, at]));
});

behaviour("a key that names another handler in the next run brings no values and no answers", async (connect) => {
  let runs = 0;
  const asked: string[] = [];
  const make = (name: string) =>
    tool({
      name,
      run: async (_input, ctx) => JSON.stringify([await ctx.once("v", () => name), await ask(ctx, "q", "Sure?")]),
    });
  const page = resource({
    uri: "page://a",
    name: "page",
    read: async (_uri, ctx) => await ctx.once("v", () => "page"),
  });
  const outer = tool({
    name: "outer",
    run: async (_input, ctx) => {
      const { content } = await ctx.callTool(["first", "second"][Math.min(runs++, 1)], {}, { key: "k" });
      const [{ text }] = await ctx.readResource("page://a", { key: "v" });
      return JSON.stringify([textOf({ content }), text]);
    },
  });
  const handlers = [make("first"), make("second"), page, outer];
  const { client } = await connect({ handlers }, {
    onElicit: ({ message }) => {
      asked.push(message);
      return echo({ message });
    },
  });
  assertEquals(JSON.parse(textOf(await client.callTool("outer"))), ['["second","Sure?"]', "page"]);
  assertEquals(asked, ["Sure?", "Sure?"]);
}, { eras: ["modern"] });
