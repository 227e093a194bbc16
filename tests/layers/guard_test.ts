// The layer `guard`: the order of guards of all levels, and the handlers that the guards of a server stand around.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import {
  group,
  McpError,
  type Middleware,
  prompt,
  resource,
  resourceProvider,
  service,
  tool,
  ToolError,
} from "../../mod.ts";
import { guard, type GuardOptions, layer, type OutputGuard } from "../../src/layers/layers.ts";
import { folder } from "../../src/ready/folder.ts";
import { skills } from "../../src/extensions/skills/skills.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { openServer } from "../support/servers.ts";

const text = z.object({ text: z.string() });

/** Creates a guard that appends its name to every text of the input and of the output. */
function append(name: string) {
  const add: OutputGuard = (value, _ctx, part) => {
    if (part === "error") {
      return { ...Object(value), content: [{ type: "text", text: `${textOf(Object(value))} ${name}` }] };
    }
    return typeof value === "string" ? `${value} ${name}` : undefined;
  };
  return guard({ input: [(input) => ({ text: `${Object(input).text} ${name}` })], output: [add] });
}

behaviour("input passes the guards of the server, the groups and the tool, and output passes them in reverse", async (
  connect,
) => {
  const say: Middleware = async (ctx, next) => {
    await ctx.log.info("log");
    return await next();
  };
  const echo = tool({
    name: "echo",
    input: text,
    use: [append("tool"), say],
    run: ({ text }) => {
      if (text.startsWith("bad")) throw new ToolError(text);
      return `${text};`;
    },
  });
  const refuse = tool({
    name: "refuse",
    input: text,
    use: [
      append("tool"),
      guard({
        input: [({ text }) => {
          throw new ToolError(`${text};`);
        }],
      }),
    ],
    run: () => "never",
  });
  const inner = group("inner", [echo, refuse], { use: [append("inner")] });
  const outer = group("outer", [inner], { use: [append("outer")] });
  const logged: unknown[] = [];
  const { client } = await connect({ handlers: [outer], use: [append("server")] }, {
    logLevel: "info",
    onNotification: ({ params }) => void logged.push(params?.data),
  });
  const input = "server outer inner tool";
  const output = "tool inner outer server";
  const call = async (name: string, text: string) => textOf(await client.callTool(`outer_inner_${name}`, { text }));
  assertEquals(await call("echo", "good"), `good ${input}; ${output}`);
  assertEquals(await call("echo", "bad"), `bad ${input} ${output}`);
  assertEquals(await call("refuse", "no"), `no ${input}; ${output}`);
  await until(() => logged.length === 2, "the messages arrive");
  assertEquals(logged, [`log ${output}`, `log ${output}`]);
});

behaviour("guards of one layer pass a value on, and a boolean of any of them refuses the call", async (connect) => {
  const note = (name: string) => (value: { readonly text: string }) => ({ text: `${value.text} ${name}` });
  const nothing = () => undefined;
  const wrong = () => true as never; // A program without a type check can return it.
  const seen: unknown[] = [];
  const output: readonly OutputGuard[] = [
    (value) => void seen.push(value),
    (value) => value === "null" ? null : `${value} 1`,
    nothing,
    (value) => value === null ? "removed" : `${value} 2`,
  ];
  const run = ({ text }: { readonly text: string }) => text;
  const chained = tool({ name: "chained", input: text, use: [guard({ input: [note("a"), nothing, note("b")] })], run });
  const first = tool({ name: "first", input: text, use: [guard({ input: [wrong, note("b")] })], run });
  const last = tool({ name: "last", input: text, use: [guard({ input: [note("a"), wrong] })], run });
  const out = tool({ name: "out", input: text, use: [guard({ output })], run });
  const none = tool({ name: "none", input: text, use: [guard({}), guard({ input: [], output: [] })], run });
  const { client, takeFaults } = await connect({ handlers: [chained, first, last, out, none] });
  const call = async (name: string, text: string) => textOf(await client.callTool(name, { text }));
  assertEquals(await call("chained", "x"), "x a b");
  assertEquals(await call("out", "x"), "x 1 2");
  assertEquals(await call("out", "null"), "removed");
  assertEquals(seen, ["x", "null"]);
  assertEquals(await call("none", "x"), "x");
  for (const name of ["first", "last"]) assert((await client.callTool(name, { text: "secret" })).isError);
  for (const { error } of takeFaults()) assertEquals(`${error}`, sentence("a guard returned true"));
});

behaviour("an input guard that returns an error in place of throwing it refuses the call", async (connect) => {
  let runs = 0;
  const run = () => `ran ${++runs}`;
  const toTool = (name: string, input: GuardOptions<{ readonly text: string }>["input"]) =>
    tool({ name, input: text, use: [guard({ input })], run });
  const returned = (error: Error) => () => error as never; // A program without a type check can return it.
  const tools = [
    toTool("tool_error", [returned(new ToolError("private"))]),
    toTool("mcp_error", [returned(McpError.busy("busy")), () => undefined]),
    toTool("plain", [() => undefined, returned(new Error("secret"))]),
  ];
  const page = resource({
    uri: "page://a",
    name: "a",
    use: [guard({ input: [returned(new Error("no"))] })],
    read: run,
  });
  const { client, takeFaults } = await connect({ handlers: [...tools, page] });
  for (const { name } of tools) assert((await client.callTool(name, { text: "x" })).isError, name);
  await assertRejects(() => client.readResource("page://a"), McpError);
  assertEquals(runs, 0);
  for (const { error } of takeFaults()) assertEquals(`${error}`, sentence("a guard returned an error"));
});

behaviour("a guard of the server can refuse a call before the services of the handler are created", async (connect) => {
  let created = 0;
  const db = service("db", () => ++created, { per: ({ principal }) => principal?.id ?? "anonymous" });
  const run = () => "read";
  const own = guard({ input: [(_input, ctx) => void ctx.get(db)] });
  const read = tool({ name: "read", services: { db }, use: [own], run });
  const page = resource({ uri: "page://a", name: "a", services: { db }, use: [own], read: run });
  let isOpen = false;
  const closed = guard({
    input: [() => {
      if (!isOpen) throw new ToolError("closed");
    }],
  });
  const { client } = await connect({ handlers: [read, page], use: [closed] });
  assertEquals(textOf(await client.callTool("read")), "closed");
  assertEquals(await client.readResource("page://a").catch((error) => error.message), "closed");
  assertEquals(created, 0);
  isOpen = true;
  assertEquals(textOf(await client.callTool("read")), "read");
  assertEquals(created, 1);
}, { perInstance: "services" });

behaviour("guards of the server stand around every handler, wherever it comes from", async (connect, way) => {
  await using stack = new AsyncDisposableStack();
  const root = await mkdtemp(`${tmpdir()}/mcp-guards-`);
  stack.defer(() => rm(root, { recursive: true, force: true }));
  await mkdir(`${root}/notes`);
  await mkdir(`${root}/skills/one`, { recursive: true });
  await writeFile(`${root}/notes/a.md`, "secret");
  await writeFile(`${root}/skills/one/SKILL.md`, "---\nname: one\ndescription: Says secret\n---\nsecret\n");
  const about = resource({ uri: "about://it", name: "about", read: () => "secret" });
  const described = layer(() => ({ name: "described", handlers: [about] }));
  const run = () => "secret";
  const late = tool({ name: "late", run });
  const handlers = [
    tool({ name: "plain", use: [described], run }),
    tool({ name: "varied", forCaller: () => ({ description: "for you" }), run }),
    group("g", [group("h", [tool({ name: "deep", run })])]),
    prompt({ name: "greet", run }),
    resource({ uri: "page://{id}", name: "page", read: run }),
    resourceProvider({ scheme: "any", name: "any", read: run }),
    folder({ path: `${root}/notes`, uri: "notes://", tools: "notes_" }),
    skills({ dir: `${root}/skills` }),
  ];
  const inputs: string[] = [];
  const { client, server } = await connect({
    handlers,
    use: [guard({
      input: [(_input, { method, params }) => void inputs.push(`${method} ${params.name ?? params.uri}`)],
      output: [(value) => JSON.parse(JSON.stringify(value).replaceAll("secret", "[hidden]"))],
    })],
  });
  server.handlers.add(late);
  const calls: readonly (readonly [string, () => Promise<unknown>])[] = [
    ...["plain", "varied", "g_h_deep", "late"].map((name) =>
      [`tools/call ${name}`, () => client.callTool(name)] as const
    ),
    ["tools/call notes_read", () => client.callTool("notes_read", { path: "a.md" })],
    ["prompts/get greet", () => client.getPrompt("greet")],
    ...["page://1", "any://1", "notes://a.md", "skill://one/SKILL.md", "about://it"].map((uri) =>
      [`resources/read ${uri}`, () => client.readResource(uri)] as const
    ),
  ];
  for (const [name, call] of calls) {
    inputs.length = 0;
    const result = JSON.stringify(await call());
    assert(result.includes("[hidden]") && !result.includes("secret"), `${name}: ${result}`);
    assertEquals(inputs, [name]);
  }
  // The handler is created again within the guard, with its extension.
  assertEquals(Object((await client.request("skills/list", {})).skills).length, 1, way.version);
  await client.close();
  // The server must not read the folders again while they are removed.
  await server.close();
}, { perInstance: "handlers" });

Deno.test("a guard of a path with parameters stands around the handlers of each path", async () => {
  const server = openServer({
    path: "/:tenant/mcp",
    handlers: ({ tenant }) => [tool({ name: "who", run: () => tenant })],
    use: [guard({ output: [(value) => `${value} guarded`] })],
  });
  await using client = await connectTest(server, { pathParams: { tenant: "a" } });
  assertEquals(textOf(await client.callTool("who")), "a guarded");
  server.handlers.add(tool({ name: "late", run: () => "late" }));
  assertEquals(textOf(await client.callTool("late")), "late guarded");
});

behaviour("the fault of an invalid result names the layers that have changed the result", async (connect) => {
  const hide = layer(() => ({
    name: "hide-salary",
    onOutput: (_output, _ctx, part) => part === "result" ? {} : undefined,
  }));
  const same = layer(() => ({ name: "same", onOutput: (output) => output }));
  const output = z.object({ salary: z.number() });
  const person = (name: string, salary: unknown, use: readonly (typeof hide)[]) =>
    tool({ name, output, use: [...use, same], run: () => ({ salary }) as { salary: number } });
  const { client, takeFaults } = await connect({ handlers: [person("hidden", 9, [hide]), person("wrong", "9", [])] });
  for (const name of ["hidden", "wrong"]) await assertRejects(() => client.callTool(name), McpError);
  const texts = takeFaults().map(({ error }) => String(error));
  assertEquals(texts, [sentence("hide-salary"), sentence()]);
  assert(!texts[1].includes("same"));
});
