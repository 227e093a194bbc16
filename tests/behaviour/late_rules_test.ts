// Rules that are added while something is on its way to a handler. The code of the first rule has to be loaded.
import { assertEquals, assertRejects } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { INTERNALS } from "../../src/core/call/internals.ts";
import { RpcError } from "../../src/testing/testing.ts";
import { prepareWith } from "../../src/server/core.ts";
import { behaviour, FENCE, fence, fenced, gate, started, turn, until, withoutFences } from "../support/behaviour.ts";

behaviour("a call that waited does not run while rules that were added meanwhile are not loaded", async (connect) => {
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
  const { client, server, takeFaults } = await connect({
    handlers: [hold, secret],
    limits: { calls: { running: 1, runningPerClient: 1 } },
  });
  const held = client.callTool("hold");
  await until(() => isHeld, "a running call");
  const waiting = started(client.callTool("secret"));
  await until(() => server[INTERNALS].engine.scheduler.waiting === 1, "a waiting call");
  prepareWith(server[INTERNALS].engine.core, () => Promise.reject(new Error("the rules are not loaded")));
  open();
  await held;
  await assertRejects(() => waiting, RpcError, "Internal error");
  assertEquals(runs, 0);
  assertEquals(takeFaults().map(({ error }) => `${error}`), ["Error: the rules are not loaded"]);
});

behaviour("nobody learns of changes of a resource while rules are not loaded", async (connect) => {
  const file = resource({ uri: "x://a", name: "a", read: () => "" });
  const { client, server } = await connect({ handlers: [file, fenced] });
  const subscription = await client.subscribe({ resourceSubscriptions: ["x://a", FENCE] });
  let areLoaded = false;
  prepareWith(server[INTERNALS].engine.core, () => {
    if (!areLoaded) return Promise.reject(new Error("the rules are not loaded"));
    server.handlers.disable(file);
    return Promise.resolve();
  });
  server.resourceUpdated("x://a");
  await turn(10);
  areLoaded = true;
  await fence(server, subscription);
  assertEquals(withoutFences(subscription).filter(({ params }) => params.uri === "x://a"), []);
});

behaviour("a handler cannot read a resource that it has just disabled", async (connect) => {
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
