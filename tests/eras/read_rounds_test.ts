// In revision 2026-07-28, a call with the answers to questions runs the handler again, which reads its resources with the
// rights of the caller who answers.
import { assertEquals } from "@std/assert";
import { type Context, createServer, resource, tool } from "../../mod.ts";
import { readAnswer, toRequest } from "../support/requests.ts";

const FORM = { type: "object", properties: {} } as const;
const INSUFFICIENT_SCOPE = -31_403;
const INVALID_PARAMS = -32_602;

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
