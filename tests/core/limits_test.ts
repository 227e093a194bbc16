// Setting limits, and the page about limits. tests/hostile/life_limits_test.ts tests their enforcement.
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { type LimitOptions, LIMITS, readLimits } from "../../src/core/capacity/limits.ts";
import { BOUNDS, testLimits } from "../support/limits.ts";
import { isWithin } from "../../src/protocol/weight.ts";
import { behaviour, gate, until } from "../support/behaviour.ts";
import { pageFile, readPage, toTables, withTables } from "../release/limits_page.ts";

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

const mistakes: readonly (readonly [limits: unknown, message: string])[] = [
  ["none", ": limits is not an object; use an object such as { calls: { running: 100 } }"],
  [null, ": limits is not an object"],
  [[], ": limits is not an object"],
  [
    { bodyBytes: 1000 },
    ".bodyBytes: there is no such limit; use request, calls, connections, memory, perTenant",
  ],
  [{ call: { running: 1 } }, ".call: there is no such limit; did you mean calls?"],
  [{ constructor: {} }, ".constructor: there is no such limit; did you mean connections?"],
  [JSON.parse('{"__proto__":{"running":1}}'), ".__proto__: there is no such limit"],
  [{ memory: 5 }, ".memory: memory is a group of limits; use an object with any of bytes, bytesPerClient"],
  [{ memory: null }, ".memory: memory is a group of limits"],
  [{ memory: [1] }, ".memory: memory is a group of limits"],
  [{ memory: { byte: 5 } }, ".memory.byte: there is no such limit; did you mean bytes or bytesPerClient?"],
  [{ memory: { size: 5 } }, ".memory.size: there is no such limit; use bytes, bytesPerClient"],
  [{ memory: { toString: 5 } }, ".memory.toString: there is no such limit"],
  [{ memory: JSON.parse('{"__proto__":5}') }, ".memory.__proto__: there is no such limit"],
  [{ request: { depth: 5 } }, ".request.depth: the bound is fixed; omit this entry"],
  [{ calls: { stateMs: 5 } }, ".calls.stateMs: the bound is fixed; omit this entry"],
  [{ sessions: { lifeMs: 5 } }, ".sessions: there is no such limit; use request, calls"],
  ...[0, -1, NaN, "5", null, true, [5], {}].map((value) =>
    [{ calls: { running: value } }, ".calls.running to"] as const
  ),
  [{ calls: { running: 0 } }, ".calls.running to 0: it must be a number above 0"],
];

Deno.test("limits that are not an object, unknown limits, and limits that are not numbers above 0 are refused with their path", () => {
  for (const [limits, message] of mistakes) {
    const make = () => createServer({ name: "l", version: "1.0.0", limits: wrong(limits) });
    assertStringIncludes(assertThrows(make, TypeError).message, `Cannot set limits${message}`);
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
  assertEquals([error.code, error.message], [-32603, "Internal error"]);
  assertStringIncludes(String(takeFaults()[0].error), "longer than 3000 bytes (calls.resultBytes)");
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
    for (const message of messages) {
      assertMatch(
        message,
        /^Cannot (?:run the call|read the body): too [^;]*; (?:try again later|send the request again later)$/,
      );
    }
  }
}, { perInstance: "limits" });

Deno.test({
  name: "docs/reference/limits.md matches the source",
  ignore: typeof Deno === "undefined", // files are read with Deno
  async fn() {
    const page = await readPage();
    assertEquals(
      page,
      withTables(page, await toTables()),
      `${pageFile.pathname} is out of date; run "deno task docs:limits"`,
    );
  },
});
