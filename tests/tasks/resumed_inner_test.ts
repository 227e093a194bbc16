// A task that another instance continues makes its inner calls again, over the values of `once` and the answers that
// the first instance has stored.
import { assertEquals } from "@std/assert";
import { type Context, createServer, tool } from "../../mod.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { z } from "zod";
import { textOf, turn, until } from "../support/behaviour.ts";
import { declared } from "./declared.ts";
import { openShared } from "./shared_store.ts";

const untilAborted = ({ signal }: Context) =>
  new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

function serve(store: Store, { names, makes, ends }: { names: string[]; makes: string[]; ends: boolean }) {
  const leaf = tool({
    name: "leaf",
    input: z.object({ name: z.string() }),
    run: async ({ name }, ctx) => {
      await turn(ends ? name.length : 5 - name.length);
      return await ctx.once("value", () => {
        makes.push(name);
        return `${name} ${makes.length}`;
      });
    },
  });
  const work = tool({
    name: "work",
    use: [task({ resume: true })],
    run: async (_input, ctx) => {
      const calls = names.map(async (name) => `${name}: ${textOf(await ctx.callTool(leaf, { name }))}`);
      const texts = await Promise.all(calls);
      return ends ? texts.sort().join(", ") : await untilAborted(ctx);
    },
  });
  return createServer({
    name: "pair",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    handlers: [tasks(), leaf, work],
    store: openShared(store),
    limits: { calls: { closeMs: 20 } },
  });
}

Deno.test("a task that another instance continues gives each inner call its own stored values", async () => {
  const store = memoryStore();
  const makes: string[] = [];
  const names = ["a", "bb", "ccc"];
  const first = serve(store, { names, makes, ends: false });
  const client = await connectTest(first, { ...declared, principal: { id: "ada" } });
  const { taskId } = await client.request("tools/call", { name: "work", arguments: {} }, { finish: false });
  await until(() => makes.length === 3, "all values are made");
  const made = makes.map((name, at) => `${name}: ${name} ${at + 1}`).sort().join(", ");
  await client.close();
  await first.close();
  const second = serve(store, { names: names.toReversed(), makes, ends: true });
  const other = await connectTest(second, { ...declared, principal: { id: "ada" } });
  let found: { readonly [key: string]: unknown } = {};
  await until(async () => (found = await other.request("tasks/get", { taskId })).status === "completed", "the end");
  assertEquals([textOf(Object(found.result)), makes.length], [made, 3]);
  await other.close();
  await second.close();
});
