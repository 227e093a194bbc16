// Sessions in the memory of one process.
import { assert, assertEquals } from "@std/assert";
import { testSessions } from "./session_suite.ts";

testSessions("memory");

// The heap is measured with a V8 flag.
Deno.test("a session stores a copy of a long client name, and not the message that contained the name", {
  ignore: typeof Deno === "undefined",
}, async () => {
  const program = `
      import { readOffer } from ${
    JSON.stringify(new URL("../../src/server/eras/legacy/handshake.ts", import.meta.url).href)
  };
      const kept = [];
      for (let i = 0; i < 20; i++) {
        const clientInfo = { name: String(i % 10).repeat(2_000_000), version: "1".repeat(1_000_000), title: "t".repeat(500_000) };
        kept.push(readOffer({ protocolVersion: "2025-11-25", clientInfo }));
      }
      gc();
      console.log(Deno.memoryUsage().heapUsed, kept.length, kept[3].info.name === "3".repeat(200));`;
  const { stdout } = await new Deno.Command("deno", {
    args: ["eval", "--no-check", "--v8-flags=--expose-gc", program],
  }).output();
  const [bytes, count, isCut] = new TextDecoder().decode(stdout).trim().split(" ");
  assertEquals([count, isCut], ["20", "true"]);
  assert(Number(bytes) < 25e6, `${bytes} bytes are held`);
});
