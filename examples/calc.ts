// A server in ten lines. Start the server with `deno serve examples/calc.ts`, `bun examples/calc.ts`, or `deno run -A
// mod.ts examples/calc.ts`.
import { createServer, tool } from "@x/mcp";
import { z } from "zod";

const add = tool({
  name: "add",
  title: "Add two numbers",
  description: "Adds two numbers",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: z.object({ a: z.number(), b: z.number() }),
  run: ({ a, b }) => a + b,
});

export default createServer({ name: "calc", version: "1.0.0", handlers: [add] });
