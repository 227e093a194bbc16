// Calls the probe through supergateway, which starts one process of a stdio server for all of its clients.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { findFreePort, toDenoDir } from "../support/processes.ts";
import type { Check } from "./checks.ts";
import { toFile, toProgram } from "./probe/commands.ts";
import { toEnvironment } from "./programs.ts";
import type { Tools } from "./tools.ts";

export const GATEWAY = "supergateway";

const START_MS = 60_000;

/** Checks that two clients, one after the other, can call a tool. */
export async function checkGateway(tools: Tools): Promise<readonly Check[]> {
  const port = findFreePort();
  const home = `${tools.work}/${GATEWAY}`;
  await Deno.mkdir(`${home}/tmp`, { recursive: true });
  const stdio = [...toProgram("deno", tools), toFile("deno", tools)].join(" ");
  const child = new Deno.Command(tools.node, {
    args: [`${tools.packages[GATEWAY]}/node_modules/.bin/${GATEWAY}`, "--stdio", stdio, "--port", String(port)],
    cwd: home,
    clearEnv: true,
    env: { ...toEnvironment({ home, path: [tools.node.replace(/\/[^/]*$/, "")] }), DENO_DIR: toDenoDir() },
    ...{ stdin: "null", stdout: "null", stderr: "null" },
  }).spawn();
  try {
    const checks: Check[] = [];
    for (const order of ["first", "second"]) {
      const failure = await callTool(new URL(`http://127.0.0.1:${port}/sse`)).catch(String);
      checks.push({
        name: `the ${order} client of one process gets a result`,
        ...failure !== undefined && { failure },
      });
    }
    return checks;
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
}

/** Returns what is wrong with the result of a call. */
async function callTool(url: URL): Promise<string | undefined> {
  const client = await connect(url);
  try {
    const result = await client.callTool({ name: "add", arguments: { a: 4000, b: 711 } });
    const text = JSON.stringify(result);
    return text.includes("4711") ? undefined : text;
  } finally {
    await client.close();
  }
}

/** Connects, and repeats the attempt until the gateway has started. */
async function connect(url: URL): Promise<Client> {
  const end = Date.now() + START_MS;
  for (;;) {
    const client = new Client({ name: "gateway-client", version: "1.0.0" });
    try {
      await client.connect(new SSEClientTransport(url));
      return client;
    } catch (error) {
      if (Date.now() > end) throw error;
      // Fixed wait: a port that nobody serves does not call.
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
