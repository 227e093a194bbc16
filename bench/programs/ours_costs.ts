// Servers whose requests are compared with plain calls. The first argument is the server:
//
//     calls     handlers that make inner calls, and a search among 100 tools
//     open      a list of 1,000 tools
//     decided   a list of 1,000 tools, each with `allow`
//     hosts     1,000 hosts of one endpoint
//     paths     a path with a parameter
import { createServer, prompt, type Server, tool } from "../../mod.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { listen } from "./listen.ts";
import { args } from "./serve.ts";
import { names, pair, query, sum, toDescription } from "./shapes.ts";

const [kind] = args;
const base = { name: "bench", version: "1.0.0" };
const add = tool({ name: "add", input: pair, output: sum, run: ({ a, b }) => ({ sum: a + b }) });
const toTool = (name: string, allow?: () => boolean) =>
  tool({ name, description: toDescription(name), input: query, allow, run: () => "nothing found" });
const toTools = (allow?: () => boolean) => Array.from({ length: 1000 }, (_, i) => toTool(`tool_${i}`, allow));

const make: Readonly<Record<string, () => Server>> = {
  calls: () =>
    createServer({
      ...base,
      handlers: [
        add,
        prompt({ name: "greet", run: () => "Hello" }),
        tool({ name: "wait", run: () => Promise.resolve("done") }),
        tool({ name: "call", run: (_input, ctx) => ctx.callTool("add", { a: 1, b: 2 }).then(() => "done") }),
        tool({ name: "prompt", run: (_input, ctx) => ctx.getPrompt("greet").then(() => "done") }),
        ...names.map((name) => toTool(name)),
        toolSearch(),
      ],
    }),
  open: () => createServer({ ...base, handlers: toTools() }),
  decided: () => createServer({ ...base, handlers: toTools(() => true) }),
  hosts: () =>
    createServer({
      ...base,
      handlers: [add],
      hosts: Array.from({ length: 1000 }, (_, i) => `t${i}.example.com`),
    }),
  paths: () => createServer({ ...base, handlers: [add], path: "/tenants/:tenant/mcp" }),
};

await listen(make[kind]());
