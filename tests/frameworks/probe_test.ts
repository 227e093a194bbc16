// The probe of the frameworks: every behaviour passes on a server of this library, and fails on a server without MCP.
import { assertEquals } from "@std/assert";
import { serve } from "../peers/runtime.ts";
import { BEHAVIOURS, probe } from "./probe.ts";
import { mcp } from "./probe_server.ts";

Deno.test("every behaviour of the probe passes on a server without a framework", async () => {
  await using port = serve(mcp);
  const outcome = await probe(`http://${port.host}/mcp`);
  assertEquals(outcome, Object.fromEntries(BEHAVIOURS.map((behaviour) => [behaviour, "passed"])));
});

Deno.test("every behaviour of the probe fails on a server without MCP, and the outcome names the response", async () => {
  await using port = serve({ fetch: () => Promise.resolve(new Response("no such page", { status: 404 })) });
  const outcome = await probe(`http://${port.host}/mcp`);
  const expected = BEHAVIOURS.map((behaviour) => [behaviour, "HTTP 404: no such page"]);
  assertEquals(outcome, Object.fromEntries(expected));
});
