// The server for the runs that kill instances: the fixture server with additional tools for long calls.
import "./skew.ts";
import { appendFileSync } from "node:fs";
import process from "node:process";
import { tool } from "@x/mcp";
import { quota } from "@x/mcp/layers";
import { z } from "zod";
import server from "../../../examples/everything.ts";

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

server.handlers.add(
  tool({
    name: "steps",
    description: "Reports its progress five times",
    run: async (_, ctx) => {
      for (let step = 1; step <= 5; step++) {
        await ctx.progress(step, { total: 5 });
        await pause(60);
      }
      return "done";
    },
  }),
  tool({
    name: "effect",
    description: "Appends the key to a file, after a question if asked to",
    input: z.object({ key: z.string(), asks: z.boolean() }),
    async run({ key, asks }, ctx) {
      if (asks) await ctx.elicit("sure", { message: "Sure?", schema: z.object({}) });
      appendFileSync(process.env.EFFECTS ?? "", `${key}\n`);
      await pause(Math.random() * 60);
      return key;
    },
  }),
  tool({
    name: "big",
    description: "Returns a text that is kept behind a link",
    input: z.object({ seed: z.string() }),
    use: [quota({ resultBytes: 2000, onLarge: "link" })],
    run: ({ seed }) => seed.repeat(1000),
  }),
);

export default server;
