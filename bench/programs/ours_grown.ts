// A server that uses this library with 50 items per list page and without per-client limits. The first argument is the
// number of tools and the number of resources.
import { createServer, resource, tool } from "../../mod.ts";
import { listen } from "./listen.ts";
import { args } from "./serve.ts";
import { pair, query, sum, toDescription } from "./shapes.ts";
import { testLimits } from "../../tests/support/limits.ts";

const [size = "2"] = args;
const numbers = Array.from({ length: Number(size) }, (_, i) => i);

const tools = [
  tool({ name: "add", description: "Adds two numbers", input: pair, output: sum, run: ({ a, b }) => ({ sum: a + b }) }),
  tool({ name: "touch", description: "Says that the first resource has changed", run: touch }),
  ...numbers.map((i) =>
    tool({ name: `tool_${i}`, description: toDescription(`tool_${i}`), input: query, run: () => "nothing found" })
  ),
];
const resources = numbers.map((i) => resource({ uri: `bench://${i}`, name: `resource_${i}`, read: () => "nothing" }));

const server = createServer({
  name: "bench",
  version: "1.0.0",
  handlers: [...tools.slice(0, numbers.length), ...resources],
  limits: testLimits({
    calls: { pageItems: 50 },
    // On Node, the server knows the addresses of the clients, which are all the same.
    connections: { sessions: 20_000, streams: 20_000, streamsPerClient: 20_000 },
    sessions: { openPerClient: 20_000 },
    memory: { bytesPerClient: 2 ** 30 },
  }),
});

function touch(): string {
  server.resourceUpdated("bench://0");
  return "touched";
}

await listen(server);
