// A stdio server that uses this library without a schema library.
import { createServer, tool } from "../../mod.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";

const number = { type: "number" };
const add = tool({
  name: "add",
  description: "Adds two numbers",
  input: { type: "object", properties: { a: number, b: number }, required: ["a", "b"] },
  run: ({ a, b }) => Number(a) + Number(b),
});

await serveStdio(createServer({ name: "bench", version: "1.0.0", handlers: [add] }));
