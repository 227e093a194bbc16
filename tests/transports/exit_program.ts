// Programs that should exit by themselves, now or after a timer. exit_test.ts starts them as processes, and selects a
// program with the argument. No program calls `exit`.
import { createServer, tool } from "../../mod.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { connectTest, fakeClock } from "../../src/testing/testing.ts";
import { attachSocket } from "../../src/server/transports/websocket.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { bun, deno } from "../../src/core/runtime.ts";
import { toRequest } from "../support/requests.ts";

const { promise: never } = Promise.withResolvers<never>();
const hello = tool({ name: "hello", run: () => "Hello!" });
const later = tool({
  name: "later",
  // Fixed wait: a program whose work takes longer than its shutdown.
  run: async () => (await new Promise((resolve) => setTimeout(resolve, 60)), "Hello!"),
});
const hang = tool({ name: "hang", run: () => never });
const slow = tool({
  name: "slow",
  run: async (_, ctx) => {
    await ctx.progress(1);
    return await never;
  },
});
const handlers = [hello, later, hang, slow];
const identity = { name: "exit", version: "1.0.0" };
const makeServer = (timeoutMs = 60_000) => createServer({ ...identity, handlers, limits: { calls: { timeoutMs } } });

const args = deno?.args ?? bun?.argv.slice(2) ?? [];
const [what, era, transport] = args;

const programs: Readonly<Record<string, () => Promise<unknown>>> = {
  // The client is closed, which ends the session. The server is not closed.
  async closed() {
    if (era !== "legacy" && era !== "modern") return;
    if (transport !== "memory" && transport !== "http" && transport !== "pipe") return;
    await using client = await connectTest(makeServer(), { era, transport });
    await client.callTool("hello");
    await client.callTool("later");
    if (transport !== "pipe") await client.subscribe({ toolsListChanged: true });
  },
  // The session is still open at the end of the program.
  async open() {
    if (era !== "legacy" && era !== "modern") return;
    if (transport !== "memory" && transport !== "pipe") return;
    const client = await connectTest(makeServer(), { era, transport });
    await client.callTool("hello");
    await client.callTool("later");
    await client.subscribe({ toolsListChanged: true });
  },
  // Uses the published client with a server in the same process.
  async client() {
    await using client = await connectClient(makeServer(), { revisions: [era] });
    await client.callTool("later");
  },
  async openClient() {
    const client = await connectClient(makeServer(), { revisions: [era] });
    await client.callTool("later");
  },
  // Uses the published client with a server on a port.
  async port() {
    const server = makeServer();
    const listening = deno?.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, server.fetch) ??
      bun?.serve({ hostname: "127.0.0.1", port: 0, fetch: server.fetch });
    const port = listening && ("addr" in listening ? listening.addr.port : listening.port);
    {
      await using client = await connectClient(`http://127.0.0.1:${port}/mcp`, { revisions: [era] });
      await client.callTool("later");
    }
    await server.close();
    if (listening && "shutdown" in listening) await listening.shutdown();
    else await listening?.stop(true);
  },
  async fake() {
    const clock = fakeClock();
    await using client = await connectTest(createServer({ ...identity, handlers, clock }), { era: "legacy" });
    await client.callTool("hello");
    await clock.advance(60_000);
  },
  // Only the server's timer can settle this promise.
  async timeout() {
    const server = makeServer(300);
    const response = await server.fetch(toRequest("tools/call", { name: "hang" }));
    console.log((await response.text()).includes("calls.timeoutMs"));
  },
  // A sweep has set the timer before this call needs it.
  async timeoutLater() {
    const server = makeServer(300);
    await using _client = await connectTest(server, { era: "legacy" });
    await server.fetch(toRequest("tools/call", { name: "later" }));
    const response = await server.fetch(toRequest("tools/call", { name: "hang" }));
    console.log((await response.text()).includes("calls.timeoutMs"));
  },
  // The call never ends, but its response becomes a stream. Only a sweep of the server opens this stream.
  async stream() {
    const server = makeServer(Infinity);
    const response = await server.fetch(toRequest("tools/call", { name: "hang" }));
    console.log(response.headers.get("content-type"));
  },
  // Wait until the first sweep has ended.
  async streamLater() {
    const server = makeServer(Infinity);
    for (let i = 0; i < 2; i++) {
      const response = await server.fetch(toRequest("tools/call", { name: "hang" }));
      console.log(response.headers.get("content-type"));
      await response.body?.cancel();
      // Fixed wait: a program whose work takes longer than its shutdown.
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  },
  // Only the client's timer can settle this promise.
  async clientTimeout() {
    const client = await connectClient(makeServer(), { timeoutMs: 300 });
    console.log(await client.callTool("hang").catch((error) => error.name));
  },
  // The input ends while a call is still running.
  async grace() {
    const line = JSON.stringify(await toRequest("tools/call", { name: "hang" }).json());
    const input = new Blob([`${line}\n`]).stream();
    await serveStdio(makeServer(), { input, output: () => Promise.resolve(), drainMs: 300 });
    console.log("served");
  },
  // Uses a WebSocket that never accepts a message.
  async socket() {
    const socket = Object.assign(new EventTarget(), { bufferedAmount: 1e9, send() {}, close() {} });
    attachSocket(makeServer(), socket as unknown as WebSocket); // The cast is safe, because attachSocket uses only these members.
    const data = JSON.stringify(await toRequest("tools/call", { name: "slow", _meta: { progressToken: 1 } }).json());
    socket.dispatchEvent(new MessageEvent("message", { data }));
    // Fixed wait: a program whose work takes longer than its shutdown.
    await new Promise((resolve) => setTimeout(resolve, 100));
    socket.dispatchEvent(new Event("close"));
  },
};

await programs[what]();
console.log("done");
