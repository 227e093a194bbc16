// A server that uses this library. The first argument selects the server: `call`, `list`, `stdio`, a number of tools,
// or the optional features to use, such as `uses:service,key,observer`. With a second argument, `@hono/node-server` serves
// the server on Node.
import * as library from "../../mod.ts";
import * as auth from "../../src/auth/auth.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { listen } from "./listen.ts";
import { args } from "./serve.ts";
import { names, pair, query, STEPS, sum, toDescription } from "./shapes.ts";
import { createUsingServer } from "./using.ts";

const { createServer, tool } = library;

const add = tool({
  name: "add",
  description: "Adds two numbers",
  input: pair,
  output: sum,
  run: ({ a, b }) => ({ sum: a + b }),
});

const count = tool({
  name: "count",
  description: "Counts to ten",
  async run(_, ctx) {
    for (let i = 1; i <= STEPS; i++) await ctx.progress(i, { total: STEPS });
    return "counted";
  },
});

const [what = "call", adapter] = args;
const searches = (count: readonly string[]) =>
  count.map((name) => tool({ name, description: toDescription(name), input: query, run: () => "nothing found" }));
const others = Array.from({ length: Number(what) || 0 }, (_, i) => `tool_${i}`);

const server = what.startsWith("uses:") ? createUsingServer(library, auth, what) : createServer({
  name: "bench",
  version: "1.0.0",
  handlers: what === "list" ? searches(names) : [add, count, ...searches(others)],
});

if (what === "stdio") await serveStdio(server);
else await listen(server, adapter);
