// Event loop delays in development. A delay that no handler caused is reported without naming a handler.
import { assertEquals, assertNotMatch, assertStringIncludes } from "@std/assert";
import { LagWatch } from "../../src/cli/lag_watch.ts";
import { connect } from "../../src/client/client.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { start } from "../support/processes.ts";
import { waitForLine } from "./lines.ts";
import { runtimes } from "./runtimes.ts";

/** Returns the delay in a warning, in milliseconds. */
const toMs = (warning: string | undefined) => warning && Number(/(\d+) ms/.exec(warning)?.[1]);

/** Replaces the delay in a warning. */
const toStable = (warning: string) => warning.replace(/\d+ ms/, "N ms");

/**
 * Creates a watch that has already observed a call. `pass` advances the time, and returns the delay that is reported.
 */
function warm(): {
  readonly watch: LagWatch;
  readonly pass: (ms: number, isRunning?: boolean) => number | string | undefined;
} {
  let now = 1000;
  const watch = new LagWatch(now);
  const pass = (ms: number, isRunning = false) => toMs(watch.tick(now += ms, isRunning));
  watch.start();
  assertEquals(pass(100), undefined);
  return { watch, pass };
}

Deno.test("a delay is reported only while a call runs or after a call has run", () => {
  const { pass } = warm();
  assertEquals(pass(900), undefined);
  assertEquals(pass(200, true), undefined);
  assertEquals(pass(201, true), 101);
  const second = warm();
  second.watch.start();
  assertEquals(second.pass(600), 500);
});

Deno.test("a delay at the end of a call is reported, also if the call started in an earlier period", () => {
  const { watch, pass } = warm();
  watch.start();
  assertEquals(pass(100, true), undefined);
  assertEquals(pass(500), 400);
  const second = warm();
  second.watch.start();
  assertEquals(second.pass(100, true), undefined);
  assertEquals(second.pass(100), undefined);
  assertEquals(second.pass(500), undefined);
});

Deno.test("time that was attributed to a handler is not reported as a delay again", () => {
  const { watch, pass } = warm();
  watch.block(500);
  assertEquals(pass(610, true), undefined);
  watch.block(500);
  assertEquals(pass(900, true), 300);
});

Deno.test("at most one delay is reported every ten seconds, and no delay of the first call", () => {
  const { pass } = warm();
  assertEquals(pass(300, true), 200);
  assertEquals(pass(9900, true), undefined);
  assertEquals(pass(10_000, true), 9900);
  const watch = new LagWatch(0);
  watch.start();
  assertEquals(watch.tick(1000, true), undefined);
});

const server = `import { createServer, tool } from "@x/mcp";
const block = () => {
  const end = performance.now() + 400;
  while (performance.now() < end);
};
const quick = tool({ name: "quick", run: () => "" });
const named = tool({ name: "named", run: block });
const later = tool({
  name: "later",
  async run() {
    await new Promise((resolve) => setTimeout(resolve));
    block();
  },
});
export default createServer({ name: "s", version: "1.0.0", handlers: [quick, named, later] });
`;

for (const { name, program } of runtimes) {
  testProcesses(
    `${name}: --watch names a handler that blocks, and also reports code that blocks after a handler has returned`,
    async () => {
      await withFiles({ "server.ts": server }, async (cwd) => {
        await using running = await start([...program, "server.ts", "--http", "--watch", "--port", "0"], { cwd });
        const [, url] = await running.waitFor(/(http:\S+)/);
        await using client = await connect(url);
        await client.callTool("named");
        assertStringIncludes(toStable(await waitForLine(running, '"named"')), sentence("tools/call", "N ms"));
        await client.callTool("later");
        const [warning] = await running.waitFor(/^(?!.*"named").* \d+ ms.*(?=\n)/m);
        assertStringIncludes(toStable(warning), sentence("N ms"));
        assertNotMatch(warning, /named|later/);
      });
    },
  );
}
