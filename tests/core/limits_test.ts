// Setting limits, and the page about limits. tests/hostile/life_limits_test.ts tests their enforcement.
import { assertEquals, assertThrows } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { type LimitOptions, LIMITS, readLimits } from "../../src/server/capacity/limits.ts";
import { BOUNDS, testLimits } from "../support/limits.ts";
import { isWithin } from "../../src/core/protocol/weight.ts";
import { behaviour, gate, until } from "../support/behaviour.ts";
import { pageFile, readPage, toTables } from "../release/limits_page.ts";
import { withTables } from "../release/page_tables.ts";
import { sentence } from "../support/messages.ts";
import { onDeno } from "../support/on_deno.ts";

Deno.test("any limit can be set, and the other limits keep their defaults", () => {
  assertEquals(readLimits({}), BOUNDS);
  assertEquals(readLimits({ request: {} }), BOUNDS);
  const changes: LimitOptions = { request: { bodyBytes: 1000 }, calls: { timeoutMs: 5, running: Infinity } };
  assertEquals(readLimits(changes), {
    ...BOUNDS,
    request: { ...BOUNDS.request, bodyBytes: 1000 },
    calls: { ...BOUNDS.calls, timeoutMs: 5, running: Infinity },
  });
  assertEquals(LIMITS.request.bodyBytes, 4 * 1024 * 1024, "the defaults changed");
});

/** Invalid limits, some of which the types reject. */
const wrong = (limits: unknown) => limits as LimitOptions; // The cast disables the type check, as in plain JavaScript.

const mistakes: readonly (readonly [limits: unknown, ...names: readonly string[]])[] = [
  ["none", "limits"],
  [null, "limits"],
  [[], "limits"],
  [{ bodyBytes: 1000 }, "limits.bodyBytes", "limits.request.bodyBytes?"],
  [{ running: 5 }, "limits.running", "limits.calls.running?"],
  [{ call: { running: 1 } }, "limits.call;", "limits.calls?"],
  [{ constructor: {} }, "limits.constructor"],
  [JSON.parse('{"__proto__":{"running":1}}'), "limits.__proto__"],
  [{ memory: 5 }, "limits.memory"],
  [{ memory: null }, "limits.memory"],
  [{ memory: [1] }, "limits.memory"],
  [{ memory: { byte: 5 } }, "limits.memory.byte;", "limits.memory.bytes?"],
  [{ memory: { size: 5 } }, "limits.memory.size"],
  [{ memory: { toString: 5 } }, "limits.memory.toString"],
  [{ memory: JSON.parse('{"__proto__":5}') }, "limits.memory.__proto__"],
  [{ request: { depth: 5 } }, "limits.request.depth", "fixed"],
  [{ calls: { stateMs: 5 } }, "limits.calls.stateMs", "fixed"],
  [{ sessions: { lifeMs: 5 } }, "limits.sessions.lifeMs", "fixed"],
  [{ streams: { writeMs: 5 } }, "limits.streams.writeMs", "fixed"],
  [{ replay: { ms: 5 } }, "limits.replay", "fixed"],
  [{ openPerClient: 5 }, "limits.openPerClient", "limits.sessions.openPerClient?"],
  [{ connections: { openPerClient: 5 } }, "limits.connections.openPerClient"],
  [{ sessions: { openPerClient: 0 } }, "limits.sessions.openPerClient"],
  ...[0, -1, NaN, "5", 5, 999].map((value) =>
    [{ streams: { heartbeatMs: value } }, "limits.streams.heartbeatMs"] as const
  ),
  ...[0, -1, NaN, "5", null, true, [5], {}].map((value) =>
    [{ calls: { running: value } }, "limits.calls.running"] as const
  ),
];

Deno.test("limits that are not an object, unknown limits, and limits that are not numbers above 0 are refused with their path", () => {
  for (const [limits, ...names] of mistakes) {
    const make = () => createServer({ name: "l", version: "1.0.0", limits: wrong(limits) });
    assertThrows(make, TypeError, sentence(...names));
  }
  // Computed limits that are undefined keep their defaults.
  for (const limits of [{ calls: undefined }, { calls: { running: undefined } }, { call: undefined }]) {
    assertEquals(readLimits(wrong(limits)), readLimits());
  }
});

Deno.test("the size of a text is measured in UTF-8 bytes", () => {
  const texts = ["", "a", "aaa", "é", "€", "😀", "a€😀é", "\ud800", "x".repeat(1000), "€".repeat(1000)];
  for (const text of texts) {
    const { length } = new TextEncoder().encode(text);
    for (const most of [length - 1, length, length + 1, 3 * length, Infinity]) {
      assertEquals(isWithin(text, most), length <= most, `${JSON.stringify(text.slice(0, 9))} in ${most} bytes`);
    }
  }
});

behaviour("calls.resultBytes counts bytes, not characters", async (connect) => {
  const give = tool({
    name: "give",
    input: { type: "object" },
    run: ({ text }: { readonly text?: unknown }) => String(text),
  });
  const { client, takeFaults } = await connect({ handlers: [give], limits: { calls: { resultBytes: 3000 } } });
  await client.callTool("give", { text: "x".repeat(2900) });
  await client.callTool("give", { text: "€".repeat(950) });
  const error = await client.callTool("give", { text: "€".repeat(1000) }).catch((error) => error);
  assertEquals([error.code, error.message], [-32603, sentence()]);
  assertEquals(String(takeFaults()[0].error), sentence('"give"', 3000, "calls.resultBytes"));
});

behaviour("a refusal because of a limit asks the client to retry later", async (connect) => {
  for (const limits of [testLimits({ calls: { running: 1, waiting: 1 } }), { memory: { bytes: 50_000 } }]) {
    const { pass, open } = gate();
    const hold = tool({ name: "hold", run: () => pass });
    const { client } = await connect({ handlers: [hold], limits });
    const messages: string[] = [];
    const calls = [1, 2, 3].map(async () => {
      await client.callTool("hold", { text: "x".repeat(15_000) }).catch((error) => messages.push(error.message));
    });
    await until(() => messages.length > 0, "a call was refused");
    open();
    await Promise.all(calls);
    // Sorted and without repetitions, because the number and the order of the refused calls can vary.
    for (const message of [...new Set(messages)].sort()) assertEquals(message, sentence());
  }
}, { perInstance: "limits" });

// files are read with Deno
onDeno("docs/reference/limits.md matches the source", async () => {
  const page = await readPage();
  assertEquals(
    page,
    withTables(page, await toTables()),
    `${pageFile.pathname} is out of date; run "deno task docs:limits"`,
  );
});
