// A call does not run if its client disconnects while the server is preparing the call.
import { assertEquals } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { gate, turn, until } from "../support/behaviour.ts";

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`a call does not run if its client disconnects while allow decides (${era})`, async () => {
    const { pass, open } = gate();
    const log: string[] = [];
    const slow = tool({
      name: "slow",
      async allow(ctx) {
        if (ctx.method !== "tools/call") return true;
        log.push("asked");
        await pass;
        return true;
      },
      run: () => void log.push("runs"),
    });
    await using server = createServer({ name: "left", version: "1.0.0", handlers: [slow] });
    const client = await connectTest(server, { transport: "pipe", era });
    const call = client.callTool("slow").catch((error) => error);
    await until(() => log.includes("asked"), "allow is called");
    await client.close();
    open();
    await turn(20);
    assertEquals(log, ["asked"]);
    await call;
  });
}
