// The estimated memory of parsed messages: some JSON needs more memory than its length suggests.
import { assert, assertEquals, assertLess, assertStringIncludes } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { BOUNDS } from "../support/limits.ts";
import { sentence } from "../support/messages.ts";
import { parseMessage } from "../../src/core/protocol/message_parser.ts";
import { countIndexes, toWeight } from "../../src/core/protocol/weight.ts";
import { Accounts } from "../../src/server/capacity/account.ts";
import { Outbox } from "../../src/server/transports/outbox.ts";
import { readReply } from "../support/requests.ts";

const toCall = (args: unknown) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "x", arguments: args } });

function weigh(text: string): number {
  const message = parseMessage(text, BOUNDS.request);
  assert(message.kind === "request", text.slice(0, 100));
  return message.weight;
}

Deno.test("for integer keys, the memory that an engine reserves is charged", () => {
  const sparse = Array.from({ length: 100 }, () => ({ 999: 0 }));
  assertLess(800_000, weigh(toCall({ sparse })));
  assertLess(weigh(toCall({ plain: Array.from({ length: 100 }, () => ({ abc: 0 })) })), 200_000);
});

Deno.test("a short message is never charged more than the estimate for its length", () => {
  let nested: unknown = 0;
  for (let depth = 0; depth < 100; depth++) nested = { 0: nested };
  const args = [nested, Array(90).fill({ 9: 0 }), Object.fromEntries(Array(100).entries()), Array(300).fill({}), "x"];
  for (const text of args.map(toCall)) {
    const message = parseMessage(text, BOUNDS.request);
    assert(message.kind === "request" && message.text === text, text);
    assertLess(toWeight(text, { max: 0, indexes: countIndexes(text) }), message.weight);
  }
});

Deno.test("a message with too many integer keys is refused before it is parsed", () => {
  const sparse = Array.from({ length: 4001 }, () => ({ 7: 0 }));
  const message = parseMessage(toCall({ sparse }), BOUNDS.request);
  assert(message.kind === "broken");
  assertEquals(message.message, sentence());
  // The same JSON inside a string is accepted, because a string has no keys.
  weigh(toCall({ text: JSON.stringify(sparse) }));
});

Deno.test("a string with many commas is not charged like an array", () => {
  const text = "1,2,3,4,5\n".repeat(380_000);
  assertLess(weigh(toCall({ text })), BOUNDS.memory.bytesPerClient);
});

Deno.test("an outgoing text stays charged in full until it was taken completely", () => {
  const accounts = new Accounts({ limits: BOUNDS });
  const account = accounts.find("x");
  const outbox = new Outbox({ texts: Infinity, characters: 1, account: () => account });
  assert(outbox.push("x".repeat(4_000_000)));
  for (let i = 0; i < 200; i++) outbox.read(16_384);
  assertLess(7_900_000, accounts.memory.used);
  outbox.clear();
  assertEquals(accounts.memory.used, 0);
});

Deno.test("the responses of a batch share the size limit of one result", async () => {
  const big = tool({ name: "big", run: () => "x".repeat(400_000) });
  const limits = { calls: { resultBytes: 1_000_000 } };
  const server = createServer({ name: "batch", version: "1.0.0", handlers: [big], limits });
  const batch = Array.from({ length: 5 }, (_, i) => (
    { jsonrpc: "2.0", id: i, method: "tools/call", params: { name: "big" } }
  ));
  const headers = { "content-type": "application/json", accept: "application/json" };
  const request = new Request("http://localhost/mcp", { method: "POST", headers, body: JSON.stringify(batch) });
  const answers: { id: number; error?: { message: string } }[] = await readReply(await server.fetch(request));
  assertEquals(answers.map(({ id }) => id), [0, 1, 2, 3, 4]);
  assertEquals(answers.map(({ error }) => !!error), [false, false, true, true, true]);
  assertStringIncludes(answers[4].error?.message ?? "", "calls.resultBytes");
  await server.close();
});
