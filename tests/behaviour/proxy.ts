// A proxy that uses published entry points only, which a test checks. It has one connection to an upstream server for
// all callers of both eras. Each question of the upstream server reaches the caller whose request caused it.
import { type Context, createServer, type Server, tool } from "@x/mcp";
import { type Client, connect, type ListedTool, type Target } from "@x/mcp/client";

const META = "io.modelcontextprotocol/";

/** A proxy, and a function that closes it. */
export interface Proxy extends AsyncDisposable {
  readonly server: Server;
}

/** Creates a proxy with the current tools of a server. */
export async function createProxy(target: Target, era: "modern" | "legacy"): Promise<Proxy> {
  // A session keeps the capabilities that the client declared in its handshake.
  const upstream = await connect(target, { era, capabilities: { elicitation: { form: {} }, roots: {} } });
  const handlers = (await upstream.listTools()).map((listed) =>
    tool.from(listed, (input, ctx) => forward(upstream, { listed, input, ctx }))
  );
  const server = createServer({ name: "proxy", version: "1.0.0", handlers });
  return {
    server,
    async [Symbol.asyncDispose]() {
      await server.close();
      await upstream.close();
    },
  };
}

interface Call {
  readonly listed: ListedTool;
  readonly input: Readonly<Record<string, unknown>>;
  readonly ctx: Context;
}

function forward(upstream: Client, { listed: { name }, input, ctx }: Call) {
  let asked = 0;
  return ctx.forward((retry) =>
    upstream.request("tools/call", { name, arguments: input, ...retry }, {
      rounds: false,
      signal: ctx.signal,
      onProgress: ({ progress, ...more }) => void ctx.progress(progress, more),
      meta: { [META + "clientCapabilities"]: ctx.client.capabilities, [META + "logLevel"]: ctx.client.logLevel },
      // In a session, the server asks while the request is running.
      onElicit: ({ message, requestedSchema }) => ctx.elicit(`${asked++}`, { message, schema: requestedSchema }),
      roots: () => ctx.roots(),
    })
  );
}
