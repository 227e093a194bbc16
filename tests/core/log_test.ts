// ctx.log has one method per level. Each method is created when it is first read.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { LOG_LEVELS, type LogLevel } from "../../src/core/protocol/types.ts";
import { fakeContext } from "../../src/testing/testing.ts";
import { toRequest } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";

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

/** Connection info as Bun passes it. Its methods are not own properties, so a copy of the object lacks them. */
class BunLike {
  readonly #address: string;
  constructor(address: string) {
    this.#address = address;
  }
  requestIP(): { address: string } {
    return { address: this.#address };
  }
}

Deno.test("code that calls fetch can pass connection info in addition to a principal", async () => {
  const whoami = tool({ name: "whoami", run: (_, ctx) => String(ctx.principal?.id) });
  const server = testServer({ handlers: [whoami] });
  const statuses = await Promise.all(
    [["203.0.113.9", "mcp.example.com"], ["127.0.0.1", "mcp.example.com"], ["127.0.0.1", "localhost"]]
      .map(async ([address, host]) => {
        const request = toRequest("tools/call", { name: "whoami" });
        const headers = new Headers(request.headers);
        headers.set("host", host);
        const asked = new Request(`http://${host}/mcp`, { method: "POST", headers, body: await request.text() });
        const response = await server.fetch(asked, { info: new BunLike(address), principal: { id: "alice" } });
        return [response.status, (await response.text()).includes('"alice"')];
      }),
  );
  assertEquals(statuses, [[200, true], [403, false], [200, true]]);
});
