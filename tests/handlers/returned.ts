// Outcomes of handlers that return a value.
import { prompt, resource, tool } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { testLimits } from "../support/limits.ts";
import { testServer } from "../support/test_server.ts";

/** The result of a tool, the contents of a resource, and the messages of a prompt. */
export interface Sent {
  readonly tool: { readonly content?: unknown; readonly structuredContent?: unknown; readonly isError?: unknown };
  readonly resource: unknown;
  readonly prompt: unknown;
  /** The errors that were reported to the author, one for each failure. */
  readonly told: readonly string[];
  /** The code, the message and the keys of the data of each error that the client got. */
  readonly codes: readonly unknown[];
}

/** Returns a value from a tool, a resource and a prompt. `make` is called once for each of these handlers. */
export async function send(
  make: () => unknown,
  { limits = {}, mimeType }: { limits?: Record<string, number>; mimeType?: string } = {},
): Promise<Sent> {
  const told: string[] = [];
  const codes: unknown[] = [];
  const run = async () => await make() as never;
  const server = testServer({
    limits: testLimits({ calls: limits }),
    handlers: [
      tool({ name: "x", run }),
      prompt({ name: "x", run }),
      resource({ uri: "test://x", name: "x", mimeType, read: run }),
    ],
    observer: { fault: ({ error }) => told.push(String(error)) },
  });
  await using client = await connectTest(server, { era: "modern", transport: "memory" });
  const ask = (method: string, params: Record<string, unknown>) =>
    client.request(method, params).catch(({ code, message, data }) => {
      codes.push([code, message, Object.keys(data ?? {})]);
      return {};
    });
  const { content, structuredContent, isError }: Sent["tool"] = await ask("tools/call", { name: "x" });
  const { contents }: { contents?: unknown } = await ask("resources/read", { uri: "test://x" });
  const { messages }: { messages?: unknown } = await ask("prompts/get", { name: "x" });
  const tool_ = JSON.parse(JSON.stringify({ content, structuredContent, isError }));
  return { tool: tool_, resource: contents, prompt: messages, told, codes };
}
