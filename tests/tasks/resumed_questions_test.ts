// A further run of a task may ask something else than the run before. An answer, such as a consent, counts only for the
// question that the client has seen.
import { assertEquals } from "@std/assert";
import { type Context, createServer, tool } from "../../mod.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, type TaskOptions, tasks } from "../../src/extensions/tasks/tasks.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { until } from "../support/behaviour.ts";
import { asking } from "./declared.ts";
import { openShared } from "./shared_store.ts";

const form = z.object({ name: z.string() });
const answers = { sure: { action: "accept", content: { name: "Ada" } } };

const untilAborted = ({ signal }: Context) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

/** An instance whose tool asks for consent to a price. */
async function startInstance(
  shared: Store,
  { price, ends = true, options = {} }: {
    readonly price: number;
    readonly ends?: boolean;
    readonly options?: TaskOptions;
  },
) {
  const pay = tool({
    name: "pay",
    use: [task({ resume: true, ...options })],
    async run(_input, ctx) {
      const { action } = await ctx.elicit("sure", { message: `Pay ${price}?`, schema: form });
      return ends ? `${action} ${price}` : await untilAborted(ctx);
    },
  });
  const server = createServer({
    name: "bank",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    handlers: [tasks(), pay],
    store: openShared(shared),
    limits: { calls: { closeMs: 20 } },
  });
  await server.ready();
  const client = await connectTest(server, {
    ...asking,
    principal: { id: "ada" },
    onElicit: () => ({ action: "accept", content: { name: "Ada" } }),
  });
  return {
    client,
    async close() {
      await client.close();
      await server.close();
    },
  };
}

async function start(client: Connection): Promise<string> {
  const { taskId } = await client.request("tools/call", { name: "pay", arguments: {} }, { finish: false });
  return String(taskId);
}

async function reach(client: Connection, taskId: string, status: string, key?: string) {
  let found: { readonly [key: string]: unknown } = {};
  const isReached = () => found.status === status && (!key || Object.hasOwn(Object(found.inputRequests), key));
  await until(async () => {
    found = await client.request("tasks/get", { taskId });
    return isReached();
  }, status);
  return found;
}

const toMessages = ({ inputRequests }: { readonly [key: string]: unknown }) =>
  Object.entries(Object(inputRequests)).map(([key, question]) => [key, Object(question).params.message]);
const toText = ({ result }: { readonly [key: string]: unknown }) => Object(result).content?.[0].text;

const update = async (client: Connection, taskId: string, inputResponses: object) =>
  await client.request("tasks/update", { taskId, inputResponses });

/** Starts a task that costs 10, answers its question, and stops its instance before the task has ended. */
async function stopAfterConsent(shared: Store, when: "before the call became a task" | "in the task") {
  const options = { after: when === "in the task" ? 0 : 50 };
  const first = await startInstance(shared, { price: 10, ends: false, options });
  const id = await start(first.client);
  if (when === "in the task") {
    await reach(first.client, id, "input_required");
    await update(first.client, id, answers);
  }
  await reach(first.client, id, "working");
  await first.close();
  return { id, options };
}

for (const when of ["before the call became a task", "in the task"] as const) {
  Deno.test(`a consent does not count for another question of a further run (${when})`, async () => {
    const shared = memoryStore();
    const { id, options } = await stopAfterConsent(shared, when);
    const second = await startInstance(shared, { price: 1000, options });
    assertEquals(toMessages(await reach(second.client, id, "input_required")), [["sure (2)", "Pay 1000?"]]);
    await update(second.client, id, { sure: answers.sure });
    assertEquals((await reach(second.client, id, "input_required")).status, "input_required");
    await update(second.client, id, { "sure (2)": answers.sure });
    assertEquals(toText(await reach(second.client, id, "completed")), "accept 1000");
    await second.close();
  });

  Deno.test(`a consent counts for the same question of a further run (${when})`, async () => {
    const shared = memoryStore();
    const { id, options } = await stopAfterConsent(shared, when);
    const second = await startInstance(shared, { price: 10, options });
    assertEquals(toText(await reach(second.client, id, "completed")), "accept 10");
    await second.close();
  });
}

Deno.test("an answer to the question of an earlier run is not an answer to another question of a further run", async () => {
  const shared = memoryStore();
  const first = await startInstance(shared, { price: 10 });
  const id = await start(first.client);
  await reach(first.client, id, "input_required", "sure");
  await first.close();
  const second = await startInstance(shared, { price: 1000 });
  assertEquals(toMessages(await reach(second.client, id, "input_required", "sure (2)")), [["sure (2)", "Pay 1000?"]]);
  await update(second.client, id, answers);
  await second.close();
  // A run that asks the first question again does not get the answer that was refused.
  const third = await startInstance(shared, { price: 10 });
  assertEquals(toMessages(await reach(third.client, id, "input_required", "sure")), [["sure", "Pay 10?"]]);
  await update(third.client, id, answers);
  assertEquals(toText(await reach(third.client, id, "completed")), "accept 10");
  await third.close();
});
