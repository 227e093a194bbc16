import { assertEquals } from "@std/assert";
import { z } from "zod";
import { McpError, prompt, resource, type ServerOptions } from "../../mod.ts";
import { ask, call, fail } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { serve, testServer } from "../support/test_server.ts";

type Handlers = NonNullable<ServerOptions["handlers"]>;

const ofPrompt = (name: unknown) => ({ type: "ref/prompt", name });
const ofResource = (uri: unknown) => ({ type: "ref/resource", uri });

async function complete(server: ReturnType<typeof serve>, ref: object, name: string, value = "", others?: object) {
  const context = others && { arguments: others };
  return (await call(server, "completion/complete", { ref, argument: { name, value }, context })).completion;
}

const empty = { values: [], total: 0, hasMore: false };
const review = prompt({
  name: "review",
  input: z.object({ language: z.string(), framework: z.string().optional(), code: z.string() }),
  complete: {
    language: (value) => ["python", "perl", "go"].filter((name) => name.startsWith(value)),
    framework: async (value, others, ctx) => await Promise.resolve([`${others.language}/${value}/${ctx.method}`]),
  },
  run: () => "",
});
const repo = resource({
  uri: "repo://{owner}/{name}{?ref}",
  name: "repo",
  complete: { owner: () => ["ada"], name: (_, { owner }) => [`${owner}'s`], ref: () => ["main"] },
  read: () => "",
});

Deno.test("a prompt's arguments are completed from the typed value and the known arguments", async () => {
  const server = serve(review);
  assertEquals((await call(server, "server/discover")).capabilities.completions, {});
  assertEquals(await complete(server, ofPrompt("review"), "language", "p"), {
    values: ["python", "perl"],
    total: 2,
    hasMore: false,
  });
  const { values } = await complete(server, ofPrompt("review"), "framework", "fla", { language: "python" });
  assertEquals(values, ["python/fla/completion/complete"]);
});

Deno.test("a template's variables are completed, for the template itself or for a URI that matches it", async () => {
  const server = serve(repo, review);
  for (const uri of ["repo://{owner}/{name}{?ref}", "repo://ada/x", "repo://ada/x?ref=1"]) {
    assertEquals((await complete(server, ofResource(uri), "owner")).values, ["ada"]);
    assertEquals((await complete(server, ofResource(uri), "name", "", { owner: "bob" })).values, ["bob's"]);
  }
  assertEquals((await complete(server, ofResource("repo://ada/x"), "ref")).values, ["main"]);
});

Deno.test("a known argument without a completer gets no values", async () => {
  const server = serve(
    review,
    prompt({ name: "bare", run: () => "" }),
    resource({ uri: "bare://{x}", name: "bare", read: () => "" }),
  );
  assertEquals(await complete(server, ofPrompt("review"), "code"), empty);
  assertEquals(await complete(server, ofPrompt("review"), "none"), empty);
  assertEquals(await complete(server, ofPrompt("review"), "constructor"), empty);
  assertEquals(await complete(server, ofPrompt("bare"), "x"), empty);
  assertEquals(await complete(server, ofResource("bare://{x}"), "x"), empty);
  assertEquals(await complete(server, ofResource("bare://1"), "x"), empty);
});

Deno.test("a server without completers has neither the capability nor the method", async () => {
  const server = serve(
    prompt({ name: "bare", complete: {}, run: () => "" }),
    resource({ uri: "bare://{x}", name: "bare", complete: { x: undefined }, read: () => "" }),
  );
  assertEquals((await call(server, "server/discover")).capabilities.completions, undefined);
  const ref = ofPrompt("bare");
  assertEquals((await fail(server, "completion/complete", { ref, argument: { name: "x", value: "" } })).code, -32601);
  server.handlers.add(review);
  assertEquals(await complete(server, ref, "x"), empty);
  server.handlers.remove(review);
  assertEquals((await fail(server, "completion/complete", { ref, argument: { name: "x", value: "" } })).code, -32601);
});

const numbers = (count: number) => Array.from({ length: count }, (_, i) => `${i}`);
const shapes = [
  { given: numbers(100), values: 100, total: 100, hasMore: false },
  { given: numbers(101), values: 100, total: 101, hasMore: true },
  { given: numbers(100_000), values: 100, total: 100_000, hasMore: true },
  { given: { values: numbers(3) }, values: 3, total: 3, hasMore: false },
  { given: { values: numbers(3), total: 3 }, values: 3, total: 3, hasMore: false },
  { given: { values: numbers(3), total: 10 }, values: 3, total: 10, hasMore: true },
  { given: { values: numbers(3), hasMore: true }, values: 3, total: undefined, hasMore: true },
  { given: { values: numbers(3), total: 10, hasMore: true }, values: 3, total: 10, hasMore: true },
  { given: { values: numbers(200), hasMore: false }, values: 100, total: 200, hasMore: true },
];

for (const { given, ...sent } of shapes) {
  const said = Array.isArray(given) ? "" : ` and ${JSON.stringify({ ...given, values: undefined })}`;
  Deno.test(`of ${Array.isArray(given) ? given.length : given.values.length} values${said}, ${sent.values} are sent`, async () => {
    const server = serve(resource({ uri: "a://{x}", name: "a", complete: { x: () => given }, read: () => "" }));
    const { values, total, hasMore } = await complete(server, ofResource("a://{x}"), "x");
    assertEquals({ values: values.length, total, hasMore }, sent);
    assertEquals(values[0], "0");
  });
}

Deno.test("the server does not filter the values by the typed text", async () => {
  const server = serve(repo);
  assertEquals((await complete(server, ofResource("repo://ada/x"), "owner", "zzz")).values, ["ada"]);
});

Deno.test("invalid requests are refused with the reason", async () => {
  const server = serve(review, repo, resource({ uri: "fixed:1", name: "fixed", read: () => "" }));
  const argument = { name: "language", value: "" };
  const ref = ofPrompt("review");
  const wrong: readonly [object, string][] = [
    [{ argument }, sentence("ref")],
    [{ ref: null, argument }, sentence("ref")],
    [{ ref: { type: "ref/tool", name: "a" }, argument }, sentence("ref.type", '"ref/tool"')],
    [{ ref: { name: "review" }, argument }, sentence("ref.type")],
    [{ ref: { type: "ref/prompt", uri: "review" }, argument }, sentence("ref.name")],
    [{ ref: { type: "ref/resource", name: "repo" }, argument }, sentence("ref.uri")],
    [{ ref: ofPrompt("none"), argument }, sentence('"none"')],
    [{ ref: ofPrompt("repo://ada/x"), argument }, sentence('"repo://ada/x"')],
    [{ ref: ofResource("review"), argument }, sentence('"review"')],
    [{ ref: ofResource("fixed:1"), argument }, sentence('"fixed:1"')],
    [{ ref: ofResource("repo://ada/../x"), argument }, sentence('"repo://ada/../x"')],
    [{ ref }, sentence("argument.name", "argument.value")],
    [{ ref, argument: { name: "language" } }, sentence("argument.name", "argument.value")],
    [{ ref, argument: { name: "language", value: 1 } }, sentence("argument.name", "argument.value")],
    [{ ref, argument: { name: 1, value: "" } }, sentence("argument.name", "argument.value")],
    [{ ref, argument, context: [] }, sentence("context")],
    [
      { ref, argument, context: { arguments: "x" } },
      sentence("context", "arguments"),
    ],
    [
      { ref, argument, context: { arguments: { code: 1 } } },
      sentence("context", '"code"'),
    ],
  ];
  for (const [params, message] of wrong) {
    const answer = await ask(server, "completion/complete", { ...params });
    assertEquals([answer.status, answer.error?.code], [400, -32602], JSON.stringify(params));
    assertEquals(answer.error?.message, message);
  }
  const long = "x".repeat(1_000_000);
  const { message } = await fail(server, "completion/complete", { ref: ofPrompt(long), argument });
  assertEquals(message.length < 300, true);
  assertEquals(await complete(server, ref, "code", long), empty);
});

Deno.test("a caller gets no values for a hidden prompt or a hidden resource", async () => {
  const allow = (ctx: { readonly meta: { readonly [key: string]: unknown } }) => ctx.meta["example.com/who"] === "ada";
  const server = serve(
    prompt({ name: "a", allow, input: z.object({ x: z.string() }), complete: { x: () => ["secret"] }, run: () => "" }),
    resource({ uri: "a://{x}", name: "a", allow, complete: { x: () => ["secret"] }, read: () => "" }),
  );
  for (const ref of [ofPrompt("a"), ofResource("a://{x}"), ofResource("a://1")]) {
    const argument = { name: "x", value: "" };
    const error = await fail(server, "completion/complete", { ref, argument });
    assertEquals(error.code, -32602);
    assertEquals(error.message, sentence());
    // Other checks must not reveal either whether the handler exists.
    assertEquals((await fail(server, "completion/complete", { ref })).message, error.message);
    const { completion } = await call(server, "completion/complete", {
      ref,
      argument,
      _meta: { "example.com/who": "ada" },
    });
    assertEquals(completion.values, ["secret"]);
  }
});

Deno.test("a completer's McpError is sent unchanged, and for any other error only an id is sent", async () => {
  const reported: unknown[] = [];
  const server = testServer({
    observer: { fault: ({ error, subject }) => reported.push(String(error), subject) },
    handlers: [resource({
      uri: "a://{x}/{y}/{z}/{n}",
      name: "a",
      complete: {
        x: throwing(new McpError(-32001, "Cannot complete: later")),
        y: throwing(new Error("secret")),
        // @ts-expect-error: the function returns nothing
        z: () => undefined,
        // @ts-expect-error: not strings
        n: () => [1],
      },
      read: () => "",
    })],
  });
  const failure = (name: string) =>
    fail(server, "completion/complete", { ref: ofResource("a://{x}/{y}/{z}/{n}"), argument: { name, value: "" } });
  assertEquals(await failure("x"), { code: -32001, message: "Cannot complete: later" });
  assertEquals(reported, []);
  assertEquals((await failure("y")).message, sentence());
  assertEquals(reported.splice(0), ["Error: secret", "a://{x}/{y}/{z}/{n}"]);
  for (const name of ["z", "n"]) {
    assertEquals((await failure(name)).message, sentence());
    assertEquals(reported.splice(0)[0], sentence(`"${name}"`, '"a://{x}/{y}/{z}/{n}"'));
  }
});
