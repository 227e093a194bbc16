// The statistics of a server, and `await using` with a server.
import { assert, assertEquals } from "@std/assert";
import { createServer, mount, tool } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { behaviour, gate, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";

behaviour("stats count running and waiting calls, and their bytes", async (connect, { transport }) => {
  const { pass, open } = gate();
  const wait = tool({
    name: "wait",
    run: async () => {
      await pass;
      return "";
    },
  });
  const { client, server } = await connect({
    handlers: [wait],
    limits: testLimits({ calls: { running: 1, runningPerClient: 1, waiting: 8 } }),
  });
  const { running, waiting, isClosing } = server.stats();
  assertEquals({ running, waiting, isClosing }, { running: 0, waiting: 0, isClosing: false });
  const calls = [client.callTool("wait"), client.callTool("wait")];
  await until(() => server.stats().waiting === 1, "a call waits");
  const busy = server.stats();
  assertEquals(busy.running, 1);
  assert(busy.bytes > 0, `${busy.bytes} bytes over ${transport}`);
  open();
  await Promise.all(calls);
  await until(() => server.stats().running === 0, "no call runs");
  assertEquals(server.stats().waiting, 0);
}, { perInstance: "limits" });

behaviour("stats report that the server is closing while a call runs", async (connect) => {
  const { pass, open } = gate();
  const wait = tool({
    name: "wait",
    run: async () => {
      await pass;
      return "";
    },
  });
  const { client, server } = await connect({ handlers: [wait] });
  const call = client.callTool("wait");
  await until(() => server.stats().running === 1, "the call runs");
  const closed = server.close();
  const { running, isClosing } = server.stats();
  assertEquals({ running, isClosing }, { running: 1, isClosing: true });
  open();
  await call;
  await closed;
  assertEquals(server.stats().running, 0);
}, { perInstance: "limits" });

behaviour("stats count sessions and streams", async (connect, { era }) => {
  const { client, server } = await connect();
  await using subscription = await client.subscribe({ toolsListChanged: true });
  await until(() => server.stats().streams === 1, "the stream is open");
  assertEquals(server.stats().sessions, era === "legacy" ? 1 : 0);
  await subscription.close();
  await client.close();
  await until(() => server.stats().streams === 0, "the stream has ended");
}, { transports: ["http"], perInstance: "limits" });

Deno.test("stats count concrete paths, and the stats of a mount are sums over its servers", async () => {
  const { pass, open } = gate();
  const wait = tool({
    name: "wait",
    run: async () => {
      await pass;
      return "";
    },
  });
  const options = { version: "1.0.0", handlers: [wait] };
  const tenants = createServer({ ...options, name: "tenants", path: "/tenants/:tenant/mcp" });
  const plain = createServer({ ...options, name: "plain" });
  await using both = mount([tenants, plain]);
  await using acme = await connectTest(tenants, { pathParams: { tenant: "acme" } });
  await using client = await connectTest(plain);
  const calls = [acme.callTool("wait"), client.callTool("wait")];
  await until(() => both.stats().running === 2, "both calls run");
  assertEquals([tenants.stats().running, tenants.stats().paths, plain.stats().paths], [1, 1, 0]);
  assertEquals([both.stats().paths, both.stats().isClosing], [1, false]);
  open();
  await Promise.all(calls);
  await plain.close();
  assertEquals([both.stats().isClosing, tenants.stats().isClosing], [true, false]);
});

Deno.test("await using closes a server once, at the end of the block", async () => {
  const closed: string[] = [];
  const observer = (name: string) => ({ close: () => void closed.push(name) });
  const make = (name: string, path = "/mcp") =>
    createServer({ name, version: "1.0.0", path, observer: observer(name) });
  {
    await using one = make("one");
    await using two = make("two");
    await two.close();
    assertEquals([closed.join(), one.stats().isClosing], ["two", false]);
  }
  assertEquals(closed, ["two", "one"]);
  {
    await using _both = mount([make("three"), make("four", "/four")]);
  }
  assertEquals(closed.slice(2).toSorted(), ["four", "three"]);
});
