// A proxy as a module on published entry points, which a test checks: one connection to another server for all callers,
// of both eras. Each question of that server reaches the caller whose request asks.
import { type Context, createServer, type Server, tool } from "@x/mcp";
import { type Client, connect, type ListedTool, type Target } from "@x/mcp/client";

const META = "io.modelcontextprotocol/";

/** A proxy, and its end. */
export interface Proxy extends AsyncDisposable {
  readonly server: Server;
}

/** Creates a proxy that offers the tools that a server has now. */
export async function createProxy(target: Target, era: "modern" | "legacy"): Promise<Proxy> {
  // A session has the capabilities of its beginning.
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
      // A session asks while the request runs.
      onElicit: ({ message, requestedSchema }) => ctx.elicit(`${asked++}`, { message, schema: requestedSchema }),
      roots: () => ctx.roots(),
    })
  );
}
