// The MCP server of the recipe in the tests, in place of examples/workers/server.ts. It has the handlers of the probe,
// and handlers that show which object has served a call.
import { createServer, type Server, tool } from "@x/mcp";
import { apiKey } from "@x/mcp/auth";
import { task, tasks } from "@x/mcp/tasks";
// @ts-ignore: only Workers have this module.
import { env } from "cloudflare:workers";
import { z } from "zod";
import { handlers } from "../frameworks/probe_server.ts";

/** Number of servers in this process. workerd runs all objects and the Worker in one isolate. */
let servers = 0;

const count = tool({ name: "count_servers", run: () => `${servers}` });

/** The texts of deferred functions and of tasks that have ended. */
const ended: string[] = [];

/** Waits for a timer of the runtime. */
async function pass(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  await promise;
}

const later = tool({
  name: "later",
  input: { text: z.string() },
  run: ({ text }, ctx) => {
    ctx.defer(async () => {
      await pass(200);
      ended.push(text);
    });
    return "later";
  },
});

const slow = tool({
  name: "slow",
  input: { text: z.string() },
  use: [task()],
  run: async ({ text }) => {
    await pass(200);
    ended.push(text);
    return text;
  },
});

const listEnded = tool({ name: "list_ended", run: () => ended.join(" ") });

/** Creates a server. With `ADA_KEY`, the server has two users. */
export function create(): Server {
  const number = ++servers;
  const which = tool({ name: "which_server", run: () => `${number}` });
  return createServer({
    name: "probe",
    version: "1.0.0",
    handlers: [tasks(), ...handlers, count, which, later, slow, listEnded],
    auth: env.ADA_KEY ? apiKey({ keys: { ada: env.ADA_KEY, bob: env.BOB_KEY } }) : undefined,
    hosts: ["mcp.example.com"],
    cors: { origins: ["https://app.example.com"] },
    secret: env.MCP_SECRET,
  });
}
