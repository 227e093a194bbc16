// Results of the middleware of a handler and its groups pass the output guards, also if the middleware has changed the
// handler's result, or has not called the handler.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, group, McpError, type Middleware, prompt, resource, tool, ToolError } from "../../mod.ts";
import { guard, idempotent, layer } from "../../src/layers/layers.ts";
import type { Connection } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour } from "../support/behaviour.ts";

const parts: unknown[] = [];

const hideIn = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll("sk-live", "[key]"));
const hide = guard({
  output: [(value, _ctx, part) => {
    parts.push(part);
    return hideIn(value);
  }],
});

/** How a middleware can change a result that has a list of blocks, messages or contents. */
const changes: Readonly<Record<string, Middleware>> = {
  "adds to": async (_ctx, next) => {
    const result = await next();
    const [name, list] = toList(result);
    return { ...result, [name]: [...list, list[0]], _meta: { key: "sk-live" } };
  },
  "changes the object of": async (_ctx, next) => {
    const result = await next();
    const [, list] = toList(result);
    list.push(JSON.parse(JSON.stringify(list[0]).replace("[key]", "sk-live")));
    return result;
  },
  replaces: async (ctx) => {
    const text = "own sk-live";
    if (ctx.method === "prompts/get") return { messages: [{ role: "user", content: { type: "text", text } }] };
    if (ctx.method === "resources/read") return { contents: [{ uri: "note://one", text }] };
    return await Promise.resolve({ content: [{ type: "text", text }], structuredContent: { text } });
  },
};

function toList(result: object): [name: string, list: unknown[]] {
  const found = Object.entries(result).find(([, value]) => Array.isArray(value));
  if (!found) throw new Error("the result has no list");
  return found;
}

const uses: Readonly<Record<string, (use: Middleware) => readonly [own: object, ofGroup: object]>> = {
  "a handler": (use) => [{ use: [use] }, {}],
  "a group": (use) => [{}, { use: [use] }],
  "the step inside": (use) => [{ use: [layer(() => ({ name: "inner", inside: use }))] }, {}],
};

const calls: Readonly<Record<string, (client: Connection) => Promise<unknown>>> = {
  tool: (client) => client.callTool("g_note"),
  prompt: (client) => client.getPrompt("g_note"),
  resource: (client) => client.readResource("note://one"),
};

for (const [what, use] of Object.entries(changes)) {
  for (const [where, toUse] of Object.entries(uses)) {
    for (const place of ["server", "handler"] as const) {
      behaviour(`middleware of ${where} that ${what} a result is guarded by the ${place}`, async (connect) => {
        const [own, ofGroup] = toUse(use);
        const guards = place === "handler" ? [hide] : [];
        const options = { ...own, use: [...guards, ...("use" in own ? own.use as [] : [])] };
        const handlers = [
          group("g", [
            tool({ name: "note", ...options, run: () => "sk-live" }),
            prompt({ name: "note", ...options, run: () => "sk-live" }),
            resource({ uri: "note://one", name: "note", ...options, read: () => "sk-live" }),
          ], ofGroup),
        ];
        const { client } = await connect({ handlers, use: place === "server" ? [hide] : [] });
        for (const [kind, call] of Object.entries(calls)) {
          const text = JSON.stringify(await call(client));
          assertEquals([text.includes("sk-live"), text.includes("[key]")], [false, true], `${kind}: ${text}`);
        }
      });
    }
  }
}

behaviour("a result that middleware leaves unchanged passes the output guards once", async (connect) => {
  const pass: Middleware = (_ctx, next) => next();
  const copy: Middleware = async (_ctx, next) => ({ ...await next() });
  const use = [hide, pass, copy, idempotent({ key: ({ key }: { readonly key: string }) => key })] as const;
  const note = tool({ name: "note", input: z.object({ key: z.string() }), use, run: () => ({ text: "sk-live" }) });
  const { client } = await connect({ handlers: [note] }, { principal: { id: "ada" } });
  for (let at = 0; at < 2; at++) {
    parts.length = 0;
    const { structuredContent } = await client.callTool("note", { key: "one" });
    assertEquals([structuredContent, parts], [{ text: "[key]" }, ["result"]]);
  }
});

behaviour("a guard can refuse, replace and leave the result of middleware", async (connect) => {
  const own = (text: string): Middleware => async () => await Promise.resolve({ content: [{ type: "text", text }] });
  const made: Readonly<Record<string, unknown>> = {
    text: "replaced",
    list: [{ type: "text", text: "block" }],
    none: 1,
  };
  const decide = guard({
    output: [(_value, { params }: Context, part) => {
      if (part !== "result") return;
      if (params.name === "refuse") throw new ToolError("refused");
      if (params.name === "fail") throw new Error("secret");
      return made[String(params.name)];
    }],
  });
  const names = ["refuse", "fail", "text", "list", "none", "leave"];
  const handlers = names.map((name) => tool({ name, use: [decide, own(name)], run: () => "" }));
  const ask = prompt({
    name: "text",
    use: [decide, async () => await Promise.resolve({ messages: [] })],
    run: () => "",
  });
  const { client, takeFaults } = await connect({ handlers: [...handlers, ask] });
  const results = [];
  for (const name of names) {
    const { content, isError } = await client.callTool(name).catch((error) => ({
      content: error.message,
      isError: true,
    }));
    results.push([
      name,
      isError ?? false,
      (Array.isArray(content) ? String(Object(content[0]).text) : content).slice(0, 14),
    ]);
  }
  assertEquals(results, [
    ["refuse", true, "refused"],
    ["fail", true, "Internal error"],
    ["text", false, "replaced"],
    ["list", false, "block"],
    ["none", true, "Internal error"],
    ["leave", false, "leave"],
  ]);
  await assertRejects(() => client.getPrompt("text"), McpError, "Internal error");
  assertEquals(takeFaults().length, 3);
});
