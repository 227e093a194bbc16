// A proxy built on published entry points. Over HTTP, upstream questions reach the right caller, whatever the eras of
// both connections.
import { assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { createServer, McpError, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { createProxy } from "./proxy.ts";
import { raise } from "../support/behaviour.ts";

const CODE = -31_401;

function createUpstream() {
  const book = tool({
    name: "book",
    title: "Book a seat",
    description: "Books a seat",
    input: z.object({ flight: z.number() }),
    output: z.object({ seat: z.string(), flight: z.number() }),
    annotations: { destructiveHint: true },
    async run({ flight }, ctx) {
      await ctx.progress(1, { total: 2 });
      const schema = z.object({ name: z.string() });
      const { content } = await ctx.elicit("who", { message: `Who flies ${flight}?`, schema });
      const [{ uri }] = await ctx.roots();
      return { seat: `${content?.name} ${uri}`, flight };
    },
  });
  const refuse = tool({ name: "refuse", run: () => raise(new McpError(CODE, "Sign in first", { realm: "seats" })) });
  return createServer({ name: "upstream", version: "1.0.0", handlers: [book, refuse] });
}

for (const upstreamEra of ["modern", "legacy"] as const) {
  for (const era of ["modern", "legacy"] as const) {
    const way = `${era} callers of a ${upstreamEra} server`;

    Deno.test(`a proxy sends each question to the caller whose request caused it (${way})`, async () => {
      await using stack = new AsyncDisposableStack();
      const upstream = createUpstream();
      stack.defer(() => upstream.close());
      const host = await openHttpServer(upstream.fetch);
      stack.defer(host.stop);
      const proxy = stack.use(await createProxy(`${host.origin}/mcp`, upstreamEra));
      const front = await openHttpServer(proxy.server.fetch);
      stack.defer(front.stop);
      const call = async (flight: number) => {
        const asked: string[] = [];
        const progress: number[] = [];
        const client = await connect(`${front.origin}/mcp`, {
          era,
          roots: [{ uri: `file:///home/${flight}` }],
          onElicit({ message }) {
            asked.push(message);
            return { action: "accept", content: { name: `user ${flight}` } };
          },
        });
        const onProgress = ({ progress: value }: { readonly progress: number }) => void progress.push(value);
        const { structuredContent } = await client.callTool("book", { flight }, { onProgress });
        await client.close();
        assertEquals(structuredContent, { seat: `user ${flight} file:///home/${flight}`, flight });
        assertEquals(asked, [`Who flies ${flight}?`]);
        assertEquals(progress.every((value) => value === 1), true);
      };
      await Promise.all(Array.from({ length: 12 }, (_, flight) => call(flight)));
    });

    Deno.test(`a proxy forwards lists, refusals and errors (${way})`, async () => {
      await using stack = new AsyncDisposableStack();
      const upstream = createUpstream();
      stack.defer(() => upstream.close());
      const proxy = stack.use(await createProxy(upstream, upstreamEra));
      const direct = stack.use(await connect(upstream, { era }));
      const client = stack.use(await connect(proxy.server, { era }));
      assertEquals(await client.listTools(), await direct.listTools());
      const [wrong, known] = [client, direct].map((each) => each.callTool("book", { flight: "x" }));
      const [{ content, isError }, expected] = [await wrong, await known];
      assertEquals([content, isError], [expected.content, true]);
      const error = await assertRejects(() => client.callTool("refuse"), McpError, "Sign in first");
      assertEquals([error.code, error.data], [CODE, { realm: "seats" }]);
    });
  }
}
