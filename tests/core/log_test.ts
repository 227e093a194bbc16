// ctx.log has one method per level. Each method is created when it is first read.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import type { LogLevel } from "../../src/core/protocol/types.ts";
import { LOG_LEVELS } from "../../src/core/protocol/types.ts";
import { fakeContext } from "../../src/testing/testing.ts";

Deno.test("each level has a method, which also works after destructuring", async () => {
  const talk = tool({
    name: "talk",
    async run(_input, { log }) {
      for (const level of LOG_LEVELS) {
        const { [level]: write } = log;
        await write(level, { logger: "unit" });
        await log[level]({ level });
      }
      const { info } = log;
      await info(1);
    },
  });
  const ctx = fakeContext();
  await talk.run({}, ctx);
  const expected = LOG_LEVELS.flatMap((level: LogLevel): unknown[] => [
    { level, data: level, logger: "unit" },
    { level, data: { level } },
  ]);
  assertEquals<unknown>(ctx.logged, [...expected, { level: "info", data: 1 }]);
});

Deno.test("messages below the client's log level are dropped", async () => {
  const ctx = fakeContext({ client: { logLevel: "error" } });
  const { warning, error } = ctx.log;
  await warning("no");
  await error("yes");
  assertEquals(ctx.logged, [{ level: "error", data: "yes" }]);
});
