// The layer `intent` asks the model for its task. The answer goes to audit records and events, and never to the tool.
import { assert, assertEquals, assertThrows } from "@std/assert";
import { z } from "zod";
import { type Context, prompt, resource, tool } from "../../mod.ts";
import { intent, INTENT_ARGUMENT, layer } from "../../src/layers/layers.ts";
import { audit, type AuditRecord, type CallEvent, jsonLog, type StartEvent } from "../../src/observe/observe.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const input = z.object({ amount: z.number() });

behaviour("the answer goes to audit records and events, and never to the tool", async (connect) => {
  const records: AuditRecord[] = [];
  const [started, ended, lines]: [StartEvent[], CallEvent[], string[]] = [[], [], []];
  const { client } = await connect({
    use: [intent(), audit({ write: (record) => void records.push(record) })],
    observer: [
      { start: (event) => void started.push(event), call: (event) => void ended.push(event) },
      jsonLog({ write: (line) => void lines.push(line) }),
    ],
    handlers: [
      tool({ name: "pay", input, run: (input, ctx: Context) => JSON.stringify([input, Object.keys(ctx.services)]) }),
      prompt({ name: "hello", run: () => "Hello!" }),
      resource({ uri: "x://r", name: "r", read: () => "text" }),
    ],
  });
  const [{ inputSchema: { properties, required } }] = await client.listTools();
  const { type, description } = Object(properties)[INTENT_ARGUMENT];
  assertEquals<unknown>([type, required], ["string", ["amount", INTENT_ARGUMENT]]);
  assert(description.length > 50);
  const isCall = ({ method }: { readonly method: string }) => method === "tools/call";
  const call = async (answer: unknown) => {
    for (const list of [records, started, ended, lines]) list.length = 0;
    const result = await client.callTool("pay", {
      amount: 1,
      ...answer !== undefined && { [INTENT_ARGUMENT]: answer },
    });
    assertEquals(textOf(result), '[{"amount":1},[]]');
    const [first] = records;
    const { arguments: args, notes } = Object(first);
    assertEquals(args, { amount: 1 });
    for (const event of [started.find(isCall), ended.find(isCall)]) assertEquals(event?.notes, notes);
    const line = JSON.parse(lines.find((line) => line.includes("tools/call")) ?? "{}");
    assertEquals(line.notes, notes);
    return notes?.[INTENT_ARGUMENT];
  };
  assertEquals(await call("Find overdue invoices"), "Find overdue invoices");
  assertEquals(await call(" Pay\n\u001b[31mthe\u200b rent\u{e0041}\u202e "), "Pay [31mthe rent");
  assertEquals([...await call("💩".repeat(500))].length, 200);
  await client.getPrompt("hello");
  await client.readResource("x://r");
});

behaviour("a wrong or missing answer fails no call, and is no argument in audit records", async (connect) => {
  const records: AuditRecord[] = [];
  const { client } = await connect({
    use: [intent({ text: "Why do you call?" }), audit({ write: (record) => void records.push(record) })],
    handlers: [tool({ name: "pay", input, run: (input) => JSON.stringify(input) })],
  });
  const [{ inputSchema }] = await client.listTools();
  assertEquals(Object(inputSchema.properties)[INTENT_ARGUMENT].description, "Why do you call?");
  for (const answer of [undefined, null, 5, "", " \u200b ", { a: 1 }]) {
    assertEquals(textOf(await client.callTool("pay", { amount: 1, [INTENT_ARGUMENT]: answer })), '{"amount":1}');
  }
  const intents = records.flatMap((record) => record.phase === "intent" ? record : []);
  // A wrong answer may be long, and may quote the user.
  assertEquals(intents.map((record) => record.arguments), Array(6).fill({ amount: 1 }));
  const wrong = { [INTENT_ARGUMENT]: "" };
  assertEquals(intents.map(({ notes }) => notes), [undefined, wrong, wrong, wrong, wrong, wrong]);
});

behaviour("a layer of an author notes texts about a call, with a name and a limited length", async (connect) => {
  const ended: CallEvent[] = [];
  const noting = (name: string, text: string) =>
    layer(() => ({ name: "noting", run: ({ note }, next) => (note(name, text), next()) }));
  const { client, takeFaults } = await connect({
    observer: { call: (event) => void ended.push(event) },
    handlers: [
      tool({ name: "fine", use: [noting("a.b", "x".repeat(2000)), noting("c", "y")], run: () => "" }),
      tool({ name: "wrong", use: [noting("a b", "x")], run: () => "" }),
    ],
  });
  await client.callTool("fine");
  const { notes } = ended.find(({ subject }) => subject === "fine") ?? {};
  assertEquals(notes, { "a.b": "x".repeat(1024), c: "y" });
  assertEquals((await client.callTool("wrong")).isError, true);
  const [{ error }] = takeFaults();
  assertEquals(Object(error).message, sentence('"a b"', '"noting"'));
});

Deno.test("intent refuses an empty text, and a tool that has an argument of its name", () => {
  const { message } = assertThrows(() => intent({ text: " " }), TypeError);
  assertEquals(message, sentence("text"));
  const own = { [INTENT_ARGUMENT]: z.string() };
  const taken = assertThrows(() => tool({ name: "t", input: own, use: [intent()], run: () => "" }), TypeError);
  assertEquals(taken.message, sentence("intent", INTENT_ARGUMENT));
});
