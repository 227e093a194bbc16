// An extension that handlers bring exists only for callers that may see at least one of these handlers.
import { assertEquals, assertRejects } from "@std/assert";
import { type Context, createServer, extension, group, McpError, resource, type Server, tool } from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import { INTERNALS } from "../../src/core/internals.ts";
import { layer } from "../../src/layers/layers.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { z } from "zod";
import { behaviour, gate, turn, until } from "../support/behaviour.ts";
import { testLimits } from "../support/limits.ts";
import { toRequest, toStatus } from "../support/requests.ts";
import { testServer } from "../support/test_server.ts";

const ID = "com.example/audit";
const declared = { extensions: [clientExtension({ id: ID })] };
const boss = { ...declared, principal: { id: "boss" } };
const eve = { ...declared, principal: { id: "eve" } };
const isBoss = ({ principal }: Context) => principal?.id === "boss";

function makeAudit() {
  const seen: unknown[] = [];
  const audit = extension({
    id: ID,
    sessions: true,
    methods: { "audit/get": { run: () => ({ day: "monday" }) } },
    notifications: { "notifications/audit/seen": { run: (_params, { principal }) => void seen.push(principal?.id) } },
    listen: { auditIds: { filter: z.array(z.string()) } },
  });
  return { audit, seen, bringing: layer(() => ({ name: "audited", handlers: [audit] })) };
}

const get = async (client: Connection) => (await client.request("audit/get", {})).day;
const refusalOf = async (run: () => Promise<unknown>) => {
  const { code, message, data } = await assertRejects(run, McpError);
  return { code, message, data };
};

/** Returns the error of a server without the extension. */
async function refuseUnknown(era: "modern" | "legacy"): Promise<unknown> {
  const server = testServer({ handlers: [] });
  const client = await connectTest(server, { ...declared, era });
  const refused = await refusalOf(() => get(client));
  await client.close();
  await server.close();
  return refused;
}

type Make = (use: ReturnType<typeof makeAudit>["bringing"]) => Parameters<typeof group>[1];

const hiding: Readonly<Record<string, Make>> = {
  "a tool with allow": (use) => [tool({ name: "pay", use: [use], allow: isBoss, run: () => "paid" })],
  "a slow allow": (use) => [
    tool({ name: "pay", use: [use], allow: (ctx) => Promise.resolve(isBoss(ctx)), run: () => "paid" }),
  ],
  "a resource with allow": (use) => [
    resource({ uri: "note://one", name: "note", use: [use], allow: isBoss, read: () => "note" }),
  ],
  "a group with allow": (use) => [
    group("admin", [tool({ name: "pay", use: [use], run: () => "paid" })], { allow: isBoss }),
  ],
  "a group in a group": (use) => [
    group("outer", [group("admin", [tool({ name: "pay", use: [use], run: () => "paid" })])], { allow: isBoss }),
  ],
};

for (const [name, make] of Object.entries(hiding)) {
  behaviour(`an extension is hidden with the handler that brings it: ${name}`, async (connect, { era }) => {
    const { bringing, seen } = makeAudit();
    const { client, join } = await connect({ handlers: make(bringing) }, boss);
    const other = await join(eve);
    assertEquals(await get(client), "monday");
    assertEquals(await refusalOf(() => get(other)), await refuseUnknown(era));
    for (const each of [other, client]) await each.notify("notifications/audit/seen", {});
    await until(() => seen.length > 0, "the notification");
    assertEquals(seen, ["boss"]);
  });

  behaviour(`subscriptions to an extension are hidden with ${name}`, async (connect) => {
    const { audit, bringing } = makeAudit();
    const { client, join } = await connect({ handlers: make(bringing) }, boss);
    const wanted = { extensions: { auditIds: ["one"] } };
    const [mine, theirs] = [await client.subscribe(wanted), await (await join(eve)).subscribe(wanted)];
    assertEquals([mine, theirs].map(({ granted }) => granted.extensions ?? {}), [wanted.extensions, {}]);
    audit.publish("auditIds", { topic: "one", method: "notifications/audit" });
    await until(() => mine.received.length > 0, "the notification");
    assertEquals(theirs.received, []);
  }, { eras: ["modern"] });
}

behaviour("a disabled handler hides the extension that it brings", async (connect, { era }) => {
  const { bringing } = makeAudit();
  const pay = tool({ name: "pay", use: [bringing], tags: ["money"], run: () => "paid" });
  const { server, client } = await connect({ handlers: [group("bank", [pay])] }, boss);
  const unknown = await refuseUnknown(era);
  for (const selected of [{ tool: "bank_pay" }, { tag: "money" }, { group: "bank" }]) {
    server.handlers.disable(selected);
    assertEquals(await refusalOf(() => get(client)), unknown, JSON.stringify(selected));
    server.handlers.enable(selected);
    assertEquals(await get(client), "monday", JSON.stringify(selected));
  }
  server.handlers.disable({ tool: "bank_pay" }, ({ principal }) => principal?.id === "eve");
  assertEquals(await get(client), "monday");
});

behaviour("an extension that several handlers bring exists for callers of any of them", async (connect, { era }) => {
  const { bringing } = makeAudit();
  const make = (name: string, allow: (ctx: Context) => boolean) =>
    tool({ name, use: [bringing], allow, run: () => "paid" });
  const [pay, see] = [make("pay", isBoss), make("see", () => true)];
  const { server, client, join } = await connect({ handlers: [pay] }, boss);
  const other = await join(eve);
  const unknown = await refuseUnknown(era);
  assertEquals(await refusalOf(() => get(other)), unknown);
  server.handlers.add(see);
  assertEquals(await get(other), "monday");
  server.handlers.disable(see);
  assertEquals(await refusalOf(() => get(other)), unknown);
  assertEquals(await get(client), "monday");
  server.handlers.enable(see);
  assertEquals(await get(other), "monday");
  server.handlers.remove(see);
  assertEquals(await refusalOf(() => get(other)), unknown);
});

for (const place of ["handlers", "use"] as const) {
  behaviour(`an extension in ${place} of the server exists for all callers`, async (connect) => {
    const { audit, bringing } = makeAudit();
    const pay = tool({ name: "pay", allow: () => false, run: () => "paid" });
    const options = place === "use" ? { handlers: [pay], use: [bringing] } : { handlers: [audit, pay] };
    const { client } = await connect(options, eve);
    assertEquals(await get(client), "monday");
  });
}

behaviour("a subscriber gets no notification of an extension after its handler was hidden", async (connect) => {
  const { audit, bringing } = makeAudit();
  const pay = tool({ name: "pay", use: [bringing], run: () => "paid" });
  const { server, client, join } = await connect({ handlers: [pay] }, boss);
  const wanted = { extensions: { auditIds: ["one"] } };
  const [mine, theirs] = [await client.subscribe(wanted), await (await join(eve)).subscribe(wanted)];
  server.handlers.disable(pay, ({ principal }) => principal?.id === "eve");
  audit.publish("auditIds", { topic: "one", method: "notifications/audit" });
  await until(() => mine.received.length > 0, "the notification");
  await turn(3);
  assertEquals(theirs.received, []);
  server.handlers.enable(pay);
  audit.publish("auditIds", { topic: "one", method: "notifications/audit" });
  await until(() => theirs.received.length > 0, "the notification");
}, { eras: ["modern"] });

behaviour("a subscriber gets later notifications of an extension if allow hangs once", async (connect) => {
  const clock = fakeClock();
  const { audit, bringing } = makeAudit();
  let hangs = false;
  let hanging = 0;
  const allow = () => {
    if (!hangs) return true;
    hanging++;
    return new Promise<never>(() => {});
  };
  const pay = tool({ name: "pay", allow, use: [bringing], run: () => "paid" });
  const { client } = await connect({ handlers: [pay], limits: { calls: { timeoutMs: 1000 } }, clock }, boss);
  const subscription = await client.subscribe({ extensions: { auditIds: ["one"] } });
  hangs = true;
  audit.publish("auditIds", { topic: "one", method: "notifications/audit" });
  await until(() => hanging === 1, "allow hangs");
  hangs = false;
  audit.publish("auditIds", { topic: "one", method: "notifications/audit" });
  await until(async () => {
    await clock.advance(200);
    return subscription.received.length;
  }, "the later notification");
}, { eras: ["modern"], perInstance: "limits" });

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`an instance waits for the shared rules before it serves a brought extension (${era})`, async () => {
    const { connect } = memoryStore()[INTERNALS];
    const make = (): Server =>
      createServer({
        name: "s",
        version: "1.0.0",
        secret: "a secret of at least thirty-two characters",
        store: customStore(connect),
        sharedDisable: true,
        handlers: [tool({ name: "pay", use: [makeAudit().bringing], run: () => "paid" })],
      });
    const [first, last] = [make(), make()];
    {
      await using client = await connectTest(first, { ...boss, era });
      assertEquals(await get(client), "monday");
      first.handlers.disable({ tool: "pay" });
      await using there = await connectTest(last, { ...boss, era });
      const unknown = await refuseUnknown(era);
      await until(async () => (await refusalOf(() => get(client))).code === Object(unknown).code, "the rule");
      await until(async () => {
        const day = await get(there).catch((error) => error.code);
        return day === Object(unknown).code;
      }, "the rule on the other instance");
      last.handlers.enable({ tool: "pay" });
      await until(async () => await get(client).catch(() => {}) === "monday", "the rule is gone");
      await using third = make();
      await using late = await connectTest(third, { ...boss, era });
      assertEquals(await get(late), "monday");
      await late.close();
    }
    for (const server of [first, last]) await server.close();
  });
}

Deno.test("notifications to a brought extension take a slot while allow decides", async () => {
  const { bringing } = makeAudit();
  const { pass, open } = gate();
  let deciding = 0;
  let most = 0;
  const pay = tool({
    name: "pay",
    use: [bringing],
    allow: async () => {
      most = Math.max(most, ++deciding);
      await pass;
      deciding--;
      return true;
    },
    run: () => "paid",
  });
  const limits = testLimits({ calls: { runningPerClient: 4 } });
  const server = testServer({ handlers: [pay], limits });
  const method = "notifications/audit/seen";
  const notify = async () => {
    // A notification has no id.
    const request = new Request(toRequest(method), { body: JSON.stringify({ jsonrpc: "2.0", method, params: {} }) });
    return await toStatus(server.fetch(request, { principal: { id: "eve" } }));
  };
  const answers = Array.from({ length: 50 }, notify);
  await until(() => most >= 4, "the first notifications");
  await turn(10);
  assertEquals(most, 4);
  open();
  assertEquals(new Set(await Promise.all(answers)), new Set([202]));
});
