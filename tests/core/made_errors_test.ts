// A call that succeeds makes no error in case it is needed, because each error gets a stack.
import { assert, assertEquals } from "@std/assert";
import { prompt, promptProvider, resource, resourceProvider, service, tool, toolProvider } from "../../mod.ts";
import type { Context, Handler } from "../../mod.ts";
import { type Client, connect } from "../../src/client/client.ts";
import { cache, circuit, guard, quota, retry } from "../../src/layers/layers.ts";
import { asTools } from "../../src/ready/ready.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { listErrors } from "../support/made_errors.ts";
import { testServer } from "../support/test_server.ts";

const reads = { readOnlyHint: true };
const add = tool({ name: "add", annotations: reads, run: () => ({ sum: 3 }) });
const allowed = tool({ name: "allowed", allow: () => Promise.resolve(true), run: () => "allowed" });
const greet = prompt({ name: "greet", run: () => "Hello" });
const readme = resource({ uri: "docs://readme", name: "readme", read: () => "text" });
const page = resource({
  uri: "docs://pages/{id}",
  name: "page",
  list: () => [{ uri: "docs://pages/1", name: "1" }],
  read: ({ id }) => id,
  complete: { id: () => ["1"] },
});
const found = tool({ name: "found", run: () => "found" });
const foundPrompt = prompt({ name: "found", run: () => "found" });
const providers = [
  toolProvider({ list: () => [found], find: (name) => name === "found" ? found : undefined }),
  promptProvider({ list: () => [foundPrompt], find: (name) => name === "found" ? foundPrompt : undefined }),
  resourceProvider({ scheme: "archive", name: "archive", list: () => ({ resources: [] }), read: () => "text" }),
];
const layered = tool({
  name: "layered",
  annotations: reads,
  use: [
    quota({ rate: { calls: 1000, perMs: 1000 }, concurrency: 5 }),
    guard({ input: [(input) => input], output: [(output) => output] }),
    retry(),
    circuit(),
    cache({ ttlMs: 1000 }),
  ],
  run: () => "layered",
});
const opened = service("opened", () => ({}), { per: "call" });
const served = tool({ name: "served", services: { opened }, run: () => "served" });

const INNER: Readonly<Record<string, (ctx: Context) => Promise<unknown>>> = {
  callTool: (ctx) => ctx.callTool("add"),
  callAllowed: (ctx) => ctx.callTool("allowed"),
  callFound: (ctx) => ctx.callTool("found"),
  getPrompt: (ctx) => ctx.getPrompt("greet"),
  readResource: (ctx) => ctx.readResource("docs://readme"),
  readPage: (ctx) => ctx.readResource("docs://pages/7"),
  list: (ctx) => ctx.list("tools"),
  complete: (ctx) => ctx.complete({ type: "ref/resource", uri: "docs://pages/{id}" }, { name: "id", value: "" }),
  once: (ctx) => ctx.once("key", () => 1),
};
const inner = Object.entries(INNER).map(([name, run]) =>
  tool({
    name,
    run: async (_input, ctx) => {
      await run(ctx);
      return "done";
    },
  })
);

const handlers: readonly Handler[] = [add, allowed, greet, readme, page, ...providers, layered, served, ...inner];

/** The requests of a client. Each of them succeeds. */
const requests: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  ...Object.fromEntries(
    ["add", "allowed", "found", "layered", "served", ...Object.keys(INNER)].map((name) =>
      [name, (client: Client) => client.callTool(name)] as const
    ),
  ),
  "call_tool": (client) => client.callTool("call_tool", { name: "add" }),
  "call_tool with an allow": (client) => client.callTool("call_tool", { name: "allowed" }),
  "call_tool with a provider": (client) => client.callTool("call_tool", { name: "found" }),
  "call_read_only_tool": (client) => client.callTool("call_read_only_tool", { name: "add" }),
  "search_tools": (client) => client.callTool("search_tools", { query: "add" }),
  "read_resource": (client) => client.callTool("read_resource", { uri: "docs://readme" }),
  "tools/list": (client) => client.listTools(),
  "prompts/list": (client) => client.listPrompts(),
  "resources/list": (client) => client.listResources(),
  "prompts/get": (client) => client.getPrompt("greet"),
  "prompts/get of a provider": (client) => client.getPrompt("found"),
  "resources/read": (client) => client.readResource("docs://readme"),
  "resources/read of a template": (client) => client.readResource("docs://pages/3"),
  "resources/read of a provider": (client) => client.readResource("archive://3"),
};

for (const version of ["2026-07-28", "2025-06-18"] as const) {
  for (const hasMiddleware of [false, true]) {
    Deno.test(`requests that succeed make no error (${version}${hasMiddleware ? ", middleware" : ""})`, async () => {
      const server = testServer({
        handlers: [...handlers, asTools(), toolSearch()],
        use: hasMiddleware ? [(_call, next) => next()] : [],
      });
      const fetch = async (url: string | URL | Request, init?: RequestInit) =>
        await server.fetch(new Request(url, init));
      await using client = await connect("http://localhost/mcp", { fetch, revisions: [version] });
      const made: Record<string, readonly string[]> = {};
      for (const [name, send] of Object.entries(requests)) {
        const isFine = async () => assert(Object(await send(client)).isError !== true, name);
        // The first call may load code, which may try in vain to use optional parts of the runtime.
        await isFine();
        const errors = await listErrors(isFine);
        if (errors.length) made[name] = errors;
      }
      assertEquals(made, {});
      // Otherwise the test would not see errors at all.
      assert((await listErrors(() => client.callTool("unknown").catch(() => {}))).length > 0);
    });
  }
}
