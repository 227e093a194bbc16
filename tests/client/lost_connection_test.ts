// A call over HTTP whose connection is lost. Some runtimes send a request again if a connection that they use again is cut.
import { once } from "node:events";
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer, type Socket } from "node:net";
import { assertEquals, assertRejects } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { connect } from "../../src/client/client.ts";
import { openHttpServer } from "../../src/testing/http_server.ts";
import { textOf } from "../support/behaviour.ts";

/** Passes connections on to a port, until `cut` closes them. */
async function startRelay(port: number) {
  // Bound: the connections of the test.
  const sockets = new Set<Socket>();
  const relay = createTcpServer((near) => {
    const far = connectTcp(port, "127.0.0.1");
    for (const [from, to] of [[near, far], [far, near]]) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => to.destroy());
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(relay, "listening");
  return {
    port: (relay.address() as AddressInfo).port,
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      this.cut();
      relay.close();
      await once(relay, "close");
    },
  };
}

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a call that may have run is not sent again if its connection is cut (${era})`, async () => {
    let runs = 0;
    const pay = tool({
      name: "pay",
      async run() {
        const run = ++runs;
        if (run === 2) relay.cut();
        return await Promise.resolve(`paid ${run}`);
      },
    });
    const server = createServer({ name: "payments", version: "1.0.0", handlers: [pay] });
    const served = await openHttpServer(server.fetch);
    const relay = await startRelay(Number(new URL(served.origin).port));
    const client = await connect(`http://127.0.0.1:${relay.port}/mcp`, { era, onWarning() {} });
    assertEquals(textOf(await client.callTool("pay")), "paid 1");
    await assertRejects(() => client.callTool("pay"));
    assertEquals(runs, 2);
    assertEquals(textOf(await client.callTool("pay")), "paid 3");
    await client.close();
    await relay.close();
    await served.stop();
    await server.close();
  });
}
