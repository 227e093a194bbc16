// A stdio server with services. tests/cli/services_process_test.ts starts it as a process, and selects its behaviour
// with the argument.
import { createServer, service, tool } from "../../mod.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { bun, deno } from "../../src/core/runtime.ts";

const what = (deno?.args ?? bun?.argv.slice(2) ?? []).at(-1);
const { promise: never } = Promise.withResolvers<never>();

const db = service("db", async ({ signal }) => {
  console.error("making db");
  if (what === "fail") throw new RangeError("the database is down");
  if (what === "hang") {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    console.error("make was aborted");
  }
  // The timer keeps the process alive, as a connection would.
  const timer = setInterval(() => {}, 1000);
  console.error("made db");
  return { timer };
}, {
  dispose: async ({ timer }, end) => {
    await new Promise((resolve) => setTimeout(resolve, 0));
    clearInterval(timer);
    console.error(`disposed db ${end}`);
  },
});
const tx = service("tx", () => 1, { per: "call", dispose: (_, end) => console.error(`disposed tx ${end}`) });

const hang = tool({
  name: "hang",
  services: { db, tx },
  run: () => {
    console.error("running");
    return never;
  },
});

const server = createServer({
  name: "services",
  version: "1.0.0",
  handlers: [hang],
  limits: { calls: { closeMs: 100 } },
});
// The default export depends on the argument, because Bun starts a server for a default export.
export default what === "export" ? server : undefined;

if (what !== "export") {
  await serveStdio(server, { drainMs: 2000 });
  console.error("served");
}
