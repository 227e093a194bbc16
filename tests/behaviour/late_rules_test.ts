// Visibility rules that are added while a call waits for a slot.
import { assertEquals, assertRejects } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { McpError } from "../../src/testing/testing.ts";
import { behaviour, gate, started, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

behaviour("a waiting call does not run if a rule added in the meantime disables its handler", async (connect) => {
  const { pass, open } = gate();
  let runs = 0;
  let isHeld = false;
  const hold = tool({
    name: "hold",
    run: async () => {
      isHeld = true;
      await pass;
    },
  });
  const secret = tool({ name: "secret", run: () => void runs++ });
  const { client, server } = await connect({
    handlers: [hold, secret],
    limits: { calls: { running: 1, runningPerClient: 1 } },
  });
  const held = client.callTool("hold");
  await until(() => isHeld, "the first call runs");
  const waiting = started(client.callTool("secret"));
  await until(() => server[INTERNALS].engine.scheduler.waiting === 1, "the second call waits");
  server.handlers.disable(secret);
  open();
  await held;
  await assertRejects(() => waiting, McpError, sentence('"secret"'));
  assertEquals(runs, 0);
}, { perInstance: "limits" });

behaviour("a handler cannot read a resource that the same handler has disabled", async (connect) => {
  const file = resource({ uri: "x://a", name: "a", read: () => "secret" });
  const read = tool({
    name: "read",
    async run(_, { server, readResource }) {
      server.handlers.disable({ resource: "x://a" });
      return await readResource("x://a").then(() => "read", () => "refused");
    },
  });
  const { client } = await connect({ handlers: [file, read] });
  assertEquals((await client.callTool("read")).content, [{ type: "text", text: "refused" }]);
});
