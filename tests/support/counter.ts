// A server whose tools increment counters in a store, once per idempotency key.
import { createServer, type Server, tool } from "../../mod.ts";
import { idempotent } from "../../src/layers/layers.ts";
import type { Store } from "../../src/stores/stores.ts";

const input = {
  type: "object",
  properties: { key: { type: "string" } },
  required: ["key"],
} as const;

/**
 * Starts a server with two tools. The tool `count` runs again after a crash; `once` does not. Each tool calls `then`
 * between its effect and its result.
 */
export function startCounter(store: Store, then: () => unknown): Server {
  const make = (name: string, rerun: boolean) =>
    tool({
      name,
      input,
      use: [idempotent({ key: ({ key }) => key, rerun })],
      async run(_input, { idempotencyToken: token }) {
        const count = await store.append(`counter-${name}`, "", { ttlMs: 60_000, max: 1000, token });
        await then();
        return { count };
      },
    });
  return createServer({
    name: "counter",
    version: "1.0.0",
    handlers: [make("count", true), make("once", false)],
    store,
    secret: "a secret of at least thirty-two characters",
  });
}
