// A program that uses `serve`. Its argument is the port. A request to /release ends the calls of its tool.
import process from "node:process";
import { createServer, service, tool } from "../../mod.ts";
import { health } from "../../src/observe/observe.ts";
import { serve } from "../../src/server/serve.ts";

const released = Promise.withResolvers<void>();
const db = service("db", () => ({ [Symbol.asyncDispose]: async () => await console.error("disposed") }));
const wait = tool({
  name: "wait",
  services: { db },
  run: async () => {
    console.error("started");
    await released.promise;
    return "done";
  },
});
const release = {
  path: "/release",
  fetch: () => {
    released.resolve();
    return new Response("released");
  },
};
const start = (controller: ReadableStreamDefaultController) => controller.enqueue(new Uint8Array(1));
const endless = { path: "/endless", fetch: () => new Response(new ReadableStream({ start })) };
const server = createServer({
  name: "program",
  version: "1.0.0",
  handlers: [wait],
  routes: [health(), release, endless],
  limits: { calls: { closeMs: 20_000 } },
});
const served = await serve(server, { port: Number(process.argv[2]) });
console.error(`at ${served.url}`);
await served.finished;
console.error("finished");
