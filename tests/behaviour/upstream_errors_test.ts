// Errors from an upstream server that a handler calls.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { createServer, McpError, prompt, resource, type Server, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { behaviour, raise, textOf } from "../support/behaviour.ts";

const CODE = -31_401;
const DATA = { realm: "archive" };
const SECRET = "Cannot open the archive: token-of-ada has expired";

function createUpstream(stack: AsyncDisposableStack): Server {
  const fails = () => raise(new McpError(CODE, SECRET, DATA));
  const server = createServer({ name: "upstream", version: "1.0.0", handlers: [tool({ name: "open", run: fails })] });
  stack.defer(() => server.close());
  return server;
}

/** Creates a handler of each kind that calls the upstream server and passes its error to `handle`. */
function createHandlers(upstream: Server, handle: (error: unknown) => never) {
  const open = async (): Promise<never> => {
    await using client = await connect(upstream);
    return await client.callTool("open").then(() => handle(new Error("the call did not fail")), handle);
  };
  return [
    tool({ name: "open", run: open }),
    prompt({ name: "open", run: open }),
    resource({ uri: "archive://1", name: "archive", read: open }),
  ];
}

const passOn = (error: unknown): never => raise(error instanceof McpError ? error.asOwn() : error);

behaviour("an upstream error that a handler does not catch becomes an internal error with an id", async (connectTo) => {
  await using stack = new AsyncDisposableStack();
  const upstream = createUpstream(stack);
  const { client, takeFaults } = await connectTo({ handlers: createHandlers(upstream, raise) });
  const result = await client.callTool("open");
  const [fault] = takeFaults();
  assertEquals(result.isError, true);
  assert(textOf(result).includes(fault.id), textOf(result));
  assert(fault.error instanceof McpError && fault.error.remote && fault.error.code === CODE);
  for (const send of [() => client.getPrompt("open"), () => client.readResource("archive://1")]) {
    const error = await assertRejects(send, McpError);
    assertEquals(error.code, -32603);
    assertEquals(Object(error.data).errorId, takeFaults()[0].id);
  }
});

behaviour("a handler can throw an upstream error as its own error", async (connectTo) => {
  await using stack = new AsyncDisposableStack();
  const upstream = createUpstream(stack);
  const { client } = await connectTo({ handlers: createHandlers(upstream, passOn) });
  const calls = [
    () => client.callTool("open"),
    () => client.getPrompt("open"),
    () => client.readResource("archive://1"),
  ];
  for (const send of calls) {
    const error = await assertRejects(send, McpError, SECRET);
    assertEquals([error.code, error.data, error.remote], [CODE, DATA, true]);
  }
});

Deno.test("in production, the client does not get the message of an upstream error", async () => {
  await using stack = new AsyncDisposableStack();
  const upstream = createUpstream(stack);
  const server = createServer({
    name: "proxy",
    version: "1.0.0",
    handlers: createHandlers(upstream, raise),
    observer: { fault: () => {} },
  });
  stack.defer(() => server.close());
  await using client = await connect(server);
  assertEquals(JSON.stringify(await client.callTool("open")).includes("token-of-ada"), false);
  for (const send of [() => client.getPrompt("open"), () => client.readResource("archive://1")]) {
    const error = await assertRejects(send, McpError);
    assertEquals(JSON.stringify([error.message, error.data]).match(/token-of-ada|archive/), null);
  }
});

Deno.test("an upstream response that is not a JSON-RPC message is an internal error", () => {
  const error = new McpError(0, "Cannot read the response", undefined, { status: 502 });
  assertEquals([error.remote, error.status], [true, 502]);
  const own = error.asOwn();
  assertEquals([own.code, own.remote, own.status, own.cause], [-32603, false, undefined, error]);
  assertEquals(own.asOwn(), own);
});
