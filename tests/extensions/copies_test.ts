// An extension, its layers and its server can come from different copies of the library.
import * as ours from "../../mod.ts";
import * as ourLayers from "../../src/layers/layers.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { clientExtension } from "../../src/client/client.ts";
import { assertEquals, assertThrows } from "../support/std.ts";
import { makeFolder, removeFolder } from "../support/copies.ts";
import { sentence } from "../support/messages.ts";

type Library = typeof ours;

const folder = await makeFolder();
const theirs: Library = await import(new URL("mod.ts", folder).href);
globalThis.addEventListener("unload", () => removeFolder(folder));

const ID = "com.example/audit";

function createAudit({ extension }: Library) {
  return extension({
    id: ID,
    methods: { "audit/get": { run: () => ({ calls: 3 }) } },
    listen: { auditChanged: { filter: { type: "boolean" } } },
  });
}

for (
  const [name, of, tools] of [["extension", ours, ours], ["tool", theirs, ours], ["server", theirs, theirs]] as const
) {
  Deno.test(`two copies of the library: extensions work if the ${name} comes from the other copy`, async () => {
    const audit = createAudit(name === "extension" ? theirs : ours);
    const ended: unknown[] = [];
    const layer = audit.layer({
      around(call, next) {
        call.detach();
        next().then((result) => ended.push(result));
        return call.result("receipt", { number: 7 });
      },
    });
    const work = tools.tool({ name: "work", use: [layer], run: (_input, ctx) => `${ctx.method}` });
    const server = of.createServer({ name: "t", version: "1", handlers: [audit, work] });
    await using client = await connectTest(server, { extensions: [clientExtension({ id: ID, results: {} })] });
    assertEquals((await client.request("audit/get")).calls, 3);
    const subscription = await client.subscribe({ extensions: { auditChanged: true } });
    audit.publish("auditChanged", { method: "notifications/audit" });
    assertEquals((await subscription.take(1))[0].method, "notifications/audit");
    await subscription.close();
    const raw = await connectTest(server, { capabilities: { extensions: { [ID]: {} } } });
    assertEquals((await raw.request("tools/call", { name: "work" })).resultType, "receipt");
    await raw.close();
    await server.close();
    assertEquals(ended, [{ content: [{ type: "text", text: "tools/call" }] }]);
  });
}

Deno.test("two copies of the library: an extension id that both copies use is registered once", () => {
  const handlers = [createAudit(ours), createAudit(theirs)];
  assertThrows(() => ours.createServer({ name: "t", version: "1", handlers }), TypeError, sentence(ID));
});

const theirLayers: typeof ourLayers = await import(new URL("src/layers/layers.ts", folder).href);

for (
  const [name, layers, tools, of] of [["layers", theirLayers, ours, ours], ["server", ourLayers, ours, theirs]] as const
) {
  Deno.test(`two copies of the library: arguments and members work if the ${name} come from the other copy`, async () => {
    const reason = layers.argument({ name: "reason", schema: { type: "string" } });
    const known = layers.member({ name: "known", schema: { type: "string" } });
    const why = layers.layer(() => ({
      name: "why",
      argument: reason,
      member: known,
      result: (_result, { given, set }) => void set(known, `${given(reason)}`),
    }));
    const notes: unknown[] = [];
    const list = tools.tool({
      name: "list",
      input: { type: "object", properties: { a: { type: "string" } } },
      output: { type: "object", properties: { items: { type: "array" }, sent: {} } },
      use: [layers.quota({ resultTokens: 300, onLarge: "more" }), why, layers.intent()],
      run: (sent) => ({ items: Array(300).fill("item"), sent }),
    });
    const changed = tools.transform(list, { name: "changed", input: { a: { name: "b" } } });
    const observer = { call: (event: { readonly notes?: object }) => void notes.push(event.notes) };
    const server = of.createServer({ name: "t", version: "1", handlers: [list, changed], observer });
    await using client = await connectTest(server);
    for (const [name, a] of [["list", "a"], ["changed", "b"]]) {
      notes.length = 0;
      const { structuredContent } = await client.callTool(name, { [a]: "x", reason: "r", task_at_hand: "test" });
      const { sent, known, more } = Object(structuredContent);
      assertEquals([sent, known, notes], [{ a: "x" }, "r", [{ task_at_hand: "test" }]]);
      const rest = await client.callTool(name, { more: more.next });
      assertEquals(
        Object(rest.structuredContent).more.shown.split(" ")[0],
        `${Object(structuredContent).items.length + 1}`,
      );
    }
    await server.close();
  });
}
