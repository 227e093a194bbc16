// An extension, its layers and its server can come from different copies of the library.
import * as ours from "../../mod.ts";
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
