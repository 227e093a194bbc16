// In revision 2026-07-28, a call with the answers to questions needs the rights to the handlers that the first run has
// called.
import { assertEquals } from "@std/assert";
import { z } from "zod";
import { type Context, createServer, prompt, promptProvider, resource, tool, toolProvider } from "../../mod.ts";
import { readAnswer, toRequest } from "../support/requests.ts";
import { plainTool } from "../support/behaviour.ts";

const FORM = { type: "object", properties: {} } as const;
const INSUFFICIENT_SCOPE = -31_403;
const INVALID_PARAMS = -32_602;

const hasVault = ({ principal }: Context) => !!principal?.scopes?.includes("vault");

const found = tool({ name: "found", run: () => "the secret" });
const foundWords = prompt({ name: "found", run: () => "the secret" });

const handlers = [
  // For a weaker token, the providers have no handler.
  toolProvider({ name: "tools", list: () => ({ tools: [] }), find: (_name, ctx) => hasVault(ctx) ? found : undefined }),
  promptProvider({
    name: "prompts",
    list: () => ({ prompts: [] }),
    find: (_name, ctx) => hasVault(ctx) ? foundWords : undefined,
  }),
  tool({ name: "scoped", scopes: ["vault"], run: () => "the secret" }),
  tool({ name: "hidden", allow: hasVault, run: () => "the secret" }),
  tool({ name: "varied", forCaller: () => ({ description: "mine" }), run: () => "the secret" }),
  tool({ name: "ruled", run: () => "the secret" }),
  tool({ name: "nested", run: async (_input, ctx) => JSON.stringify(await ctx.callTool("scoped")) }),
  prompt({
    name: "words",
    scopes: ["vault"],
    input: z.object({ word: z.string() }),
    complete: { word: () => ["the secret"] },
    run: () => "the secret",
  }),
  tool({ name: "open", run: () => "the secret" }),
];

/** Each inner call, and the code with which a weaker token cannot continue the call. `undefined` if it can. */
const CASES: readonly (readonly [(ctx: Context) => Promise<unknown>, number | undefined])[] = [
  [(ctx) => ctx.callTool("scoped"), INSUFFICIENT_SCOPE],
  [(ctx) => ctx.callTool("nested"), INSUFFICIENT_SCOPE],
  [(ctx) => ctx.callTool("hidden"), INVALID_PARAMS],
  [(ctx) => ctx.callTool("ruled"), INVALID_PARAMS],
  [(ctx) => ctx.callTool("found"), INVALID_PARAMS],
  [(ctx) => ctx.getPrompt("found"), INVALID_PARAMS],
  [(ctx) => ctx.getPrompt("words", { word: "" }), INSUFFICIENT_SCOPE],
  [(ctx) => ctx.complete({ type: "ref/prompt", name: "words" }, { name: "word", value: "" }), INVALID_PARAMS],
  [(ctx) => ctx.list("tools"), INVALID_PARAMS],
  [(ctx) => ctx.list("prompts"), INVALID_PARAMS],
  [(ctx) => ctx.callTool("open"), undefined],
  // Every caller can call the tool.
  [(ctx) => ctx.callTool("varied"), undefined],
];

Deno.test("a value of `once` that depends on an inner call is only for tokens with the rights to its handler", async () => {
  for (const [at, [inner, code]] of CASES.entries()) {
    const outer = plainTool("outer", async (ctx) => {
      const value = await ctx.once("value", () => inner(ctx));
      await ctx.elicit("sure", { message: "Sure?", schema: FORM });
      return JSON.stringify(value);
    });
    await using server = createServer({
      name: "bank",
      version: "1.0.0",
      handlers: [...handlers, outer],
      auth: (request: Request) => ({ id: "ada", scopes: (request.headers.get("x-scopes") ?? "").split(" ") }),
    });
    server.handlers.disable({ tool: "ruled" }, (ctx) => !hasVault(ctx));
    const send = async (scopes: string, more = {}) => {
      const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
      const params = { name: "outer", arguments: {}, ...more, _meta };
      return await readAnswer(await server.fetch(toRequest("tools/call", params, { "x-scopes": scopes })));
    };
    const { result } = await send("vault");
    const answers = {
      requestState: result.requestState,
      inputResponses: { sure: { action: "accept", content: {} } },
    };
    assertEquals((await send("mail", answers)).error?.code, code, `case ${at}`);
    assertEquals((await send("vault", answers)).error, undefined, `case ${at}`);
  }
});

Deno.test("the keys of questions in inner calls contain no arguments", async () => {
  const asks = tool({
    name: "asks",
    input: z.object({ pin: z.string() }),
    run: async (_input, ctx) => (await ctx.elicit("sure", { message: "Sure?", schema: FORM })).action,
  });
  const outer = plainTool("outer", async (ctx) => JSON.stringify(await ctx.callTool(asks, { pin: "pin 1234" })));
  await using server = createServer({ name: "bank", version: "1.0.0", handlers: [asks, outer] });
  const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
  const params = { name: "outer", arguments: {}, _meta };
  const { result } = await readAnswer(await server.fetch(toRequest("tools/call", params)));
  const [key] = Object.keys(result.inputRequests);
  assertEquals(/^asks [\w-]{22}\t sure$/.test(key), true, key);
});

// In revision 2026-07-28, a call with the answers to questions runs the handler again, which reads its resources with the
// rights of the caller who answers.

type Json = { readonly [key: string]: unknown };

const read = async (ctx: Context) => {
  const [content] = await ctx.readResource("vault://one");
  return "text" in content ? content.text ?? "" : "";
};

function serve(run: (ctx: Context) => Promise<string>) {
  const answers: string[] = [];
  const vault = resource({
    uri: "vault://one",
    name: "vault",
    scopes: ["vault"],
    read: async (_, ctx) => {
      const { action } = await ctx.elicit("open", { message: "Open?", schema: FORM });
      answers.push(action);
      return "the secret";
    },
  });
  const page = resource({ uri: "page://{id}", name: "page", scopes: ["vault"], read: () => "x" });
  const server = createServer({
    name: "bank",
    version: "1.0.0",
    handlers: [tool({ name: "read", run: (_, ctx) => run(ctx) }), vault, page],
    auth: (request: Request) => ({ id: "ada", scopes: (request.headers.get("x-scopes") ?? "").split(" ") }),
  });
  const send = async (scopes: string, more: Json = {}) => {
    const _meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
    const params = { name: "read", arguments: {}, ...more, _meta };
    return await readAnswer(await server.fetch(toRequest("tools/call", params, { "x-scopes": scopes })));
  };
  return { server, send, answers };
}

const toAnswers = ({ inputRequests, requestState }: Json) => ({
  requestState,
  inputResponses: Object.fromEntries(
    Object.keys(Object(inputRequests)).map((key) => [key, { action: "accept", content: {} }]),
  ),
});

Deno.test("a token without the scopes of a resource cannot answer its question with the other token's state", async () => {
  const { server, send, answers } = serve(read);
  const { result } = await send("vault");
  const weak = await send("mail", toAnswers(result));
  assertEquals([weak.error?.code, answers], [INSUFFICIENT_SCOPE, []]);
  const strong = await send("vault", toAnswers(result));
  assertEquals([strong.result.content[0].text, answers], ["the secret", ["accept"]]);
  await server.close();
});

Deno.test("a value of `once` that depends on a resource is only for tokens with the rights to the resource", async () => {
  const uris = [["page://1"], Array.from({ length: 40 }, (_, id) => `page://${id}`)];
  for (const read of uris) {
    const { server, send } = serve(async (ctx) => {
      const value = await ctx.once("value", async () => {
        for (const uri of read) await ctx.readResource(uri);
        return "the secret";
      });
      await ctx.elicit("sure", { message: "Sure?", schema: FORM });
      return value;
    });
    const { result } = await send("vault");
    const weak = await send("mail", toAnswers(result));
    assertEquals(weak.error?.code, read.length > 1 ? INVALID_PARAMS : INSUFFICIENT_SCOPE);
    assertEquals((await send("vault", toAnswers(result))).result.content[0].text, "the secret");
    await server.close();
  }
});
