// The audit log has an intent before each handler and an outcome after it. If an entry cannot be written, the call
// fails.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { createServer, extension, McpError, prompt, resource, tool, ToolError } from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import { audit, type AuditOptions, type AuditRecord } from "../../src/observe/observe.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { asking } from "../tasks/declared.ts";
import { behaviour, until } from "../support/behaviour.ts";
import { ask } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";
import { testServer } from "../support/test_server.ts";
import { patch } from "../support/patch.ts";

const form = { type: "object", properties: { name: { type: "string" } } };
const ran: unknown[] = [];
const handlers = [
  tool({
    name: "pay",
    input: { type: "object", properties: { to: { type: "string" } }, required: ["to"] },
    run: (input) => (ran.push(input), "paid"),
  }),
  tool({ name: "wrong", run: throwing(new ToolError("wrong")) }),
  tool({ name: "closed", run: throwing(new McpError(-31001, "closed")) }),
  tool({ name: "asks", run: async (_, ctx) => (await ctx.elicit("a", { message: "A?", schema: form })).action }),
  prompt({ name: "greet", run: () => "Hi" }),
  resource({ uri: "note://{id}", name: "note", read: ({ id }) => id }),
];

function auditor(options: Partial<AuditOptions> = {}) {
  const records: AuditRecord[] = [];
  return { use: [audit({ write: (record) => void records.push(record), ...options })], records };
}

behaviour("a call has an intent with its unmodified arguments, and an outcome", async (connect, { era }) => {
  const { use, records } = auditor();
  const { client } = await connect({ handlers, use }, { onElicit: () => ({ action: "decline" }) });
  await client.listTools();
  await client.callTool("pay", { to: "Ada", extra: 1 });
  await client.callTool("pay", { to: 5 });
  await client.callTool("wrong");
  await client.callTool("closed").catch(() => {});
  await client.readResource("note://1");
  await client.getPrompt("greet");
  await client.callTool("asks");
  const intents = records.flatMap((record) => record.phase === "intent" ? [record] : []);
  const outcomes = records.flatMap((record) => record.phase === "outcome" ? [record] : []);
  const asked = era === "modern" ? [["asks", "input_required", undefined]] : [];
  assertEquals(outcomes.map(({ subject, outcome, code }) => [subject, outcome, code]), [
    ["pay", "result", undefined],
    ["pay", "tool_error", undefined],
    ["wrong", "tool_error", undefined],
    ["closed", "error", -31001],
    ["note://1", "result", undefined],
    ["greet", "result", undefined],
    ...asked,
    ["asks", "result", undefined],
  ]);
  assertEquals(intents.map(({ id }) => id), outcomes.map(({ id }) => id));
  assertEquals(new Set(intents.map(({ id }) => id)).size, intents.length);
  assertEquals(intents.slice(0, 2).map((intent) => intent.arguments), [{ to: "Ada", extra: 1 }, { to: 5 }]);
  assertEquals(intents[0].client, { name: "test", version: "1.0.0" });
  assertEquals(records.map(({ phase }) => phase), intents.flatMap(() => ["intent", "outcome"] as const));
});

behaviour("answers to tasks, cancellations of tasks and methods of other extensions are recorded", async (connect) => {
  const { use, records } = auditor();
  const pay = tool({
    name: "pay",
    use: [task()],
    run: async (_, ctx) => (await ctx.elicit("sure", { message: "Sure?", schema: form })).action,
  });
  const notes = extension({
    id: "com.example/notes",
    methods: { "notes/list": { run: () => ({ notes: [] }) }, "notes/fail": { run: () => Promise.reject(closed) } },
  });
  const { client } = await connect({ handlers: [tasks(), pay, notes], use }, {
    ...asking,
    extensions: [...asking.extensions, clientExtension({ id: "com.example/notes" })],
    principal: { id: "ada" },
  });
  const start = async () => String((await client.request("tools/call", { name: "pay" }, { finish: false })).taskId);
  const [answered, cancelled] = [await start(), await start()];
  const get = async () => await client.request("tasks/get", { taskId: answered });
  await until(async () => (await get()).status === "input_required", "the question");
  records.splice(0);
  const inputResponses = { sure: { action: "decline" } };
  await client.request("tasks/update", { taskId: answered, inputResponses });
  await client.request("tasks/cancel", { taskId: cancelled });
  await client.request("tasks/cancel", { taskId: "unknown" }).catch(() => {});
  await client.request("notes/list", { since: 3 });
  await client.request("notes/fail").catch(() => {});
  await client.listTools();
  const seen = records.flatMap((record) =>
    record.phase === "intent" ? [[record.method, record.principal, record.subject, record.arguments]] : []
  );
  assertEquals(seen, [
    ["tasks/update", "ada", answered, { taskId: answered, inputResponses }],
    ["tasks/cancel", "ada", cancelled, { taskId: cancelled }],
    ["tasks/cancel", "ada", "unknown", { taskId: "unknown" }],
    ["notes/list", "ada", undefined, { since: 3 }],
    ["notes/fail", "ada", undefined, {}],
  ]);
  // The calls of the tool end when their tasks end.
  const ofExtensions = records.filter(({ method }) => method !== "tools/call");
  const outcomes = ofExtensions.flatMap((record) => record.phase === "outcome" ? [[record.outcome, record.code]] : []);
  assertEquals(outcomes, [
    ["result", undefined],
    ["result", undefined],
    ["error", -32602],
    ["result", undefined],
    ["error", -31001],
  ]);
}, { eras: ["modern"] });

const closed = new McpError(-31001, "closed");

behaviour("methods of an extension are recorded in sessions too", async (connect) => {
  const { use, records } = auditor();
  const notes = extension({
    id: "com.example/notes",
    sessions: true,
    methods: { "notes/add": { subject: "name", run: () => ({}) } },
  });
  const { client } = await connect({ handlers: [notes], use }, {
    extensions: [clientExtension({ id: "com.example/notes", subjects: { "notes/add": "name" } })],
  });
  await client.request("notes/add", { name: "milk" });
  const [intent] = records;
  assertEquals([intent.method, intent.subject, records.length], ["notes/add", "milk", 2]);
});

behaviour("if the intent of a call cannot be written, the call fails and its handler does not run", async (connect) => {
  let isDown = true;
  const write = async () => {
    await Promise.resolve();
    if (isDown) throw new Error("The disk is full");
  };
  const { use } = auditor({ write });
  const { client, takeFaults } = await connect({ handlers, use });
  const before = ran.length;
  const { message } = await assertRejects(() => client.callTool("pay", { to: "Ada" }), McpError);
  assert(!message.includes("disk"), message);
  await client.listTools();
  assertEquals([ran.length, takeFaults().length], [before, 1]);
  isDown = false;
  await client.callTool("pay", { to: "Ada" });
  assertEquals(ran.length, before + 1);
});

behaviour("if redact makes an intent invalid, the intent is not written and the call fails", async (connect) => {
  for (const spoilt of [undefined, null, "text", Promise.resolve({})]) {
    const { use, records } = auditor({ redact: () => spoilt as never });
    const { client, takeFaults } = await connect({ handlers, use });
    const before = ran.length;
    await assertRejects(() => client.callTool("pay", { to: "Ada" }), McpError);
    assertEquals([ran.length, records.length, takeFaults().length], [before, 0, 1]);
  }
});

Deno.test("with continue, the outcome has the redacted fields if only the write failed, and none of them if redact failed", async () => {
  using _patched = patch(console, { error: () => {} });
  let fails: "redact" | "write" = "write";
  const outcomes: AuditRecord[] = [];
  const use = audit({
    onError: "continue",
    redact(intent) {
      if (fails === "redact") throw new Error("no rule");
      return { ...intent, principal: "somebody", subject: "something", arguments: undefined };
    },
    write(record) {
      if (record.phase === "outcome") outcomes.push(record);
      else throw new Error("the disk is full");
    },
  });
  await using server = createServer({ name: "bank", version: "1.0.0", handlers, use: [use] });
  await using client = await connectTest(server, { principal: { id: "ada" } });
  await client.callTool("pay", { to: "Ada" });
  fails = "redact";
  await client.callTool("pay", { to: "Ada" });
  assertEquals(outcomes.map(({ principal, subject }) => [principal, subject]), [
    ["somebody", "something"],
    [undefined, undefined],
  ]);
});

behaviour("with continue, calls run despite failed writes, and only the first error is printed", async (connect) => {
  const printed: string[] = [];
  using _patched = patch(console, { error: (text) => printed.push(text) });
  const write = () => Promise.reject(new Error("The disk is full"));
  const { use } = auditor({ write, onError: "continue" });
  const { client } = await connect({ handlers, use });
  const before = ran.length;
  await client.callTool("pay", { to: "Ada" });
  await client.callTool("pay", { to: "Ben" });
  assertEquals(ran.length, before + 2);
  assertEquals(printed.length, 1);
  const [first, ...rest] = printed[0].split("\n");
  assertEquals(first, sentence());
  assertStringIncludes(rest.join("\n"), "The disk is full");
});

behaviour("redact changes the written entry, but not the handler's arguments", async (connect) => {
  const { use, records } = auditor({
    redact(intent) {
      const given = intent.arguments as { to?: string };
      given.to = "***";
      return { ...intent, id: "mine", subject: "hidden", principal: undefined };
    },
  });
  const { client } = await connect({ handlers, use });
  await client.callTool("pay", { to: "Ada" });
  assertEquals(ran.at(-1), { to: "Ada" });
  assertEquals(records.map(({ subject }) => subject), ["hidden", "hidden"]);
  assert(!JSON.stringify(records).includes("Ada") && !JSON.stringify(records).includes("mine"));
});

Deno.test("lists stay public on a server with an audit log", async () => {
  const { use } = auditor();
  const server = testServer({ handlers, use });
  const response = await ask(server, "tools/list", {});
  await server.close();
  assertEquals(Object(response).result.cacheScope, "public");
});

Deno.test("audit requires a function that writes", () => {
  assertThrows(() => audit({} as AuditOptions), TypeError, sentence("write"));
});
