// What a client makes the server hold is charged to it, and given back once.
import { assert, assertEquals } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { PIPE } from "../../src/transports/channel.ts";
import { any, as, pause, soon, start, toCall, toInitialize, toLegacy, toListen, toSlowCall } from "./attack.ts";

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

Deno.test("a subscription keeps no capabilities that its client is not charged with", async () => {
  let kept = 0;
  const seen = tool({
    name: "seen",
    allow: ({ client }) => {
      kept = Math.max(kept, JSON.stringify(client.capabilities).length);
      return true;
    },
    run: () => "",
  });
  const server = start({ handlers: [seen], limits: { clientBytes: 1_000_000 } });
  const capabilities = { experimental: { large: Array.from({ length: 50_000 }, () => ({})) } };
  const response = await server.fetch(toListen(undefined, { [CAPABILITIES]: capabilities }), as("eve"));
  server.handlers.remove(seen);
  await pause();
  await response.body?.cancel();
  await server.close();
  assert(response.status !== 200 || kept < 10_000, `50,000 values are kept while a client may hold 1,000,000 bytes`);
});
