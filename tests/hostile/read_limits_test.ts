// Rate limits of a resource that a tool reads on behalf of its client.
import { assertEquals } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { quota } from "../../src/layers/layers.ts";
import { behaviour } from "../support/behaviour.ts";

behaviour("the rate limit of a resource also applies when a handler reads the resource", async (join) => {
  const uri = "slow://report";
  const report = resource({
    uri,
    name: "report",
    use: [quota({ rate: { calls: 2, perMs: 600_000 } })],
    read: () => "42",
  });
  const show = tool({ name: "show", run: async (_input, ctx) => Object((await ctx.readResource(uri))[0]).text });
  const { client } = await join({ handlers: [report, show] });
  const codes = [];
  for (let i = 0; i < 3; i++) codes.push(await client.callTool("show").then(() => 0, (error) => error.code));
  codes.push(await client.readResource(uri).then(() => 0, (error) => error.code));
  assertEquals(codes, [0, 0, -31429, -31429]);
}, { perInstance: "limits" });
