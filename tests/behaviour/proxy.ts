// A proxy that imports only published entry points, as a test checks. All callers of both eras share one connection to
// the upstream server. Each upstream question reaches the caller whose request caused it.
import { type Context, createServer, type Server, tool } from "@x/mcp";
import { type Client, connect, type ListedTool, type Target } from "@x/mcp/client";

/** A proxy. Disposing closes the server and the connection to the upstream server. */
export interface Proxy extends AsyncDisposable {
  readonly server: Server;
}

/** Creates a proxy that has the upstream server's tools. Tools that the upstream server adds later are missing. */
export async function createProxy(target: Target, era: "modern" | "legacy"): Promise<Proxy> {
  // The capabilities of a session cannot change, so declare every capability that a caller may need.
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
  return ctx.forward(
    (retry, options) => upstream.request("tools/call", { name, arguments: input, ...retry }, options),
    { key: `upstream ${name}` },
  );
}
