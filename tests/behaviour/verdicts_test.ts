// Return values of `allow` and similar functions. Only `true` grants access. Any value that is not a boolean denies
// access, and is reported to the observer.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { group, resource, type Schema, tool } from "../../mod.ts";
import type { StandardResult } from "../../src/core/schema/standard_result.ts";
import { behaviour, raise } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

/** Values that an author may return by mistake, instead of `true` or `false`. */
const ODD: readonly unknown[] = [
  undefined,
  null,
  1,
  0,
  "yes",
  "",
  {},
  [],
  () => true,
  Promise.resolve("yes"),
  Promise.resolve(undefined),
  Promise.resolve([true]),
  { then: (resolve: (value: unknown) => void) => resolve({ granted: false }) },
];

/** Creates a function that returns `value`. Its type claims that the value is a boolean. */
function deciding(value: unknown): () => boolean {
  return () => value as boolean;
}

behaviour("a handler is hidden if its allow returns neither true nor false", async (connect) => {
  for (const odd of ODD) {
    const secret = tool({ name: "secret", allow: deciding(odd), run: () => "told" });
    const grouped = group("team", [tool({ name: "secret", run: () => "told" })], { allow: deciding(odd) });
    const inner = group("open", [tool({ name: "secret", allow: deciding(odd), run: () => "told" })], {
      allow: () => true,
    });
    const file = resource({ uri: "secret://{id}", name: "secret", allow: deciding(odd), read: () => "told" });
    const { client, takeFaults } = await connect({ handlers: [secret, grouped, inner, file] });
    assertEquals(await client.listTools(), []);
    assertEquals(await client.listResourceTemplates(), []);
    for (const name of ["secret", "team_secret", "open_secret"]) await assertRejects(() => client.callTool(name));
    await assertRejects(() => client.readResource("secret://1"));
    const faults = takeFaults();
    assert(faults.length);
    for (const { error } of faults) assertEquals(String(error), sentence("TypeError", "allow"));
  }
}, { transports: ["http", "pipe"] });

behaviour("a rule that selects other callers does not replace an `allow` that fails", async (connect) => {
  for (const odd of ODD) {
    const secret = tool({ name: "secret", allow: deciding(odd), run: () => "told" });
    const { client, server, takeFaults } = await connect({ handlers: [secret] });
    // The rule does not select this caller, so the tool's own `allow` decides.
    server.handlers.disable(secret, () => false);
    assertEquals(await client.listTools(), []);
    server.handlers.enable(secret, () => true);
    assertEquals(await client.listTools(), []);
    await assertRejects(() => client.callTool("secret"));
    assert(takeFaults().length);
  }
}, { transports: ["http"] });

behaviour("a rule that returns neither true nor false hides its handlers", async (connect) => {
  const messages = new Set<string>();
  for (const odd of ODD) {
    const open = tool({ name: "open", run: () => "told" });
    const { client, server, takeFaults } = await connect({ handlers: [open] });
    server.handlers.disable(open, deciding(odd));
    assertEquals(await client.listTools(), []);
    server.handlers.enable(open);
    assertEquals((await client.listTools()).length, 1);
    server.handlers.disable(open);
    server.handlers.enable(open, deciding(odd));
    assertEquals(await client.listTools(), []);
    await assertRejects(() => client.callTool("open"));
    const faults = takeFaults();
    assert(faults.length);
    for (const { error } of faults) messages.add(String(error));
  }
  // Sorted, because a runtime may report an error of one value after an error of the next value.
  for (const message of [...messages].sort()) assertEquals(message, sentence("TypeError"));
}, { transports: ["http"] });

behaviour("a log message is sent only to clients for which `to` returns true", async (connect) => {
  const { client, server, takeFaults } = await connect();
  await client.request("logging/setLevel", { level: "debug" });
  const fail = () => raise(new Error("cannot decide"));
  for (const odd of ODD) server.log.info("secret", { to: deciding(odd) });
  server.log.info("secret", { to: fail });
  server.log.info("public", { to: () => true });
  await client.request("ping");
  const messages = client.received.filter(({ method }) => method === "notifications/message");
  assertEquals(messages.map(({ params }) => params?.data), ["public"]);
  assertEquals(takeFaults().length, ODD.length + 1);
}, { eras: ["legacy"], transports: ["pipe"] });

behaviour("a schema that returns neither a value nor issues refuses every input", async (connect) => {
  const results: readonly unknown[] = [
    {},
    true,
    { success: false },
    { issues: undefined },
    Promise.resolve({}),
    { then: (resolve: (value: unknown) => void) => resolve({ success: true }) },
  ];
  for (const result of results) {
    const schema: Schema = {
      "~standard": {
        version: 1,
        vendor: "own",
        validate: () => result as StandardResult, // The cast acts as an author without types would.
        jsonSchema: { input: () => ({ type: "object" }), output: () => ({ type: "object" }) },
      },
    };
    let ran = 0;
    const run = () => `${++ran}`;
    const handlers = [tool({ name: "whole", input: schema, run }), tool({ name: "part", input: { a: schema }, run })];
    const { client, takeFaults } = await connect({ handlers });
    for (const name of ["whole", "part"]) await client.callTool(name, { a: {} }).catch(() => {});
    assertEquals(ran, 0);
    assertEquals(takeFaults().length, 2);
  }
}, { transports: ["http"] });
