// The lines of the JSON log: their fields, and values that are never logged.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { McpError, resource, tool } from "../../mod.ts";
import { apiKey } from "../../src/auth/auth.ts";
import { jsonLog, type JsonLogOptions, type LogRecord } from "../../src/observe/observe.ts";
import { behaviour, raise } from "../support/behaviour.ts";
import { ask, toRequest } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";

const SECRET = "s3cret-9f41c7";

const handlers = [
  tool({ name: "fine", input: { type: "object" }, run: () => "fine" }),
  tool({
    name: "broken",
    input: { type: "object" },
    run: (input) => raise(new TypeError(`Cannot use ${JSON.stringify(input)}\n    at ${SECRET}`)),
  }),
  tool({
    name: "closed",
    input: { type: "object" },
    run: (input) => raise(new McpError(-31001, `closed: ${JSON.stringify(input)}`)),
  }),
  tool({
    name: "asks",
    run: async (_, ctx) =>
      (await ctx.elicit("a", { message: SECRET, schema: { type: "object", properties: { name: { type: "string" } } } }))
        .action,
  }),
  resource({ uri: "note://{id}", name: "note", read: ({ id }) => id }),
];

function logger(options: Partial<JsonLogOptions> = {}) {
  const lines: string[] = [];
  const records = () => lines.map((line): LogRecord => JSON.parse(line));
  return { observer: jsonLog({ write: (line) => lines.push(line), ...options }), lines, records };
}

behaviour("each call is logged in one line, without arguments, results and messages", async (connect, { version }) => {
  const { observer, lines, records } = logger();
  const { client, takeFaults } = await connect({ handlers, observer }, {
    onElicit: () => ({ action: "accept", content: { name: SECRET } }),
  });
  const args = { note: SECRET };
  await client.callTool("fine", args);
  await client.callTool("broken", args);
  await client.callTool("closed", args).catch(() => {});
  await client.callTool("asks").catch(() => {});
  await client.readResource(`note://${SECRET}`);
  await assertRejects(() => client.callTool(SECRET));
  takeFaults();
  assert(!lines.join("\n").includes(SECRET), lines.find((line) => line.includes(SECRET)));
  assert(lines.every((line) => !line.includes("\n")));
  const [fine] = records().filter(({ name }) => name === "fine");
  assertEquals([fine.level, fine.event, fine.method, fine.outcome], ["info", "call", "tools/call", "result"]);
  assertEquals([typeof fine.durationMs, fine.revision, fine.client], ["number", version, "test/1.0.0"]);
  assertEquals(new Date(fine.time).toISOString(), fine.time);
  const [fault] = records().filter(({ event }) => event === "fault");
  assertEquals([fault.level, fault.name, fault.error], ["error", "broken", "TypeError"]);
  assert(/^[\da-f]{8}$/.test(String(fault.errorId)));
  assertStringIncludes(JSON.stringify(fault.stack), "json_log_test");
  const [closed] = records().filter(({ name }) => name === "closed");
  assertEquals([closed.outcome, closed.code, "message" in closed], ["error", -31001, false]);
  assert(records().some(({ event, reason }) => event === "refused" && reason === "params"));
});

behaviour("`details` adds messages and URIs", async (connect) => {
  const { observer, lines } = logger({ details: true });
  const { client, takeFaults } = await connect({ handlers, observer });
  await client.callTool("broken", { note: "a" });
  await client.callTool("closed", { note: "b" }).catch(() => {});
  await client.readResource("note://7");
  takeFaults();
  const text = lines.join("\n");
  for (const part of ["Cannot use", "closed: ", "note://7"]) assertStringIncludes(text, part);
});

behaviour("redact can change a record, or leave the line out", async (connect) => {
  const { observer, records } = logger({
    redact: (record) => record.event === "call" ? { ...record, principal: undefined, team: "red" } : undefined,
  });
  const { client } = await connect({ handlers, observer });
  await client.callTool("fine", {});
  await assertRejects(() => client.callTool("gone"));
  assertEquals(new Set(records().map(({ event }) => event)), new Set(["call"]));
  assert(records().every(({ team }) => team === "red"));
});

Deno.test("no line contains a token, whether the token was rejected or accepted", async () => {
  const { observer, lines, records } = logger({ details: true });
  const auth = apiKey({ keys: { ada: `key-${SECRET}-${SECRET}` } });
  const server = testServer({ handlers, observer, auth });
  for (const key of [`wrong-${SECRET}`, `key-${SECRET}-${SECRET}`]) {
    const headers = { authorization: `Bearer ${key}` };
    await (await server.fetch(toRequest("tools/call", { name: "fine" }, headers))).body?.cancel();
  }
  await server.close();
  assert(records().some(({ event, state }) => event === "auth" && state === "refused"));
  assert(records().some(({ event, principal }) => event === "call" && String(principal).endsWith("ada")));
  assert(!lines.join("\n").includes(SECRET), lines.join("\n"));
});

Deno.test("control characters from clients cannot forge a line", async () => {
  const { observer, lines } = logger();
  const server = testServer({ handlers, observer });
  await ask(server, "gone/\u2028\u202e\n{}", {}).catch(() => {});
  await server.close();
  assert(lines.length > 0 && lines.every((line) => !/[\n\u2028\u202e]/.test(line)));
});
