// A call with a plan can become a task: it is applied once, and another instance continues it without comparing the plan.
import { assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { planned } from "../../src/layers/layers.ts";
import { memoryStore, type Store } from "../../src/stores/stores.ts";
import { type Connection, connectTest, fakeClock } from "../../src/testing/testing.ts";
import { advanceUntil, behaviour, gate, textOf, until } from "../support/behaviour.ts";
import { openServer } from "../support/servers.ts";
import { declared } from "./declared.ts";
import { reach, start } from "./requests.ts";
import { openShared } from "./shared_store.ts";

const ada = { id: "ada" };

function remove(run: () => unknown, plan: () => unknown = () => "all files") {
  const made = tool({ name: "remove", use: [task({ resume: true })], run: async () => String(await run()) });
  return [tasks(), ...planned(made, { plan })];
}

async function plan(client: Connection): Promise<string> {
  // The planning tool is no task.
  const { structuredContent } = await client.callTool("plan_remove");
  return String(Object(structuredContent).plan);
}

behaviour("a call with a plan becomes one task", async (connect) => {
  const { pass, open } = gate();
  let runs = 0;
  const handlers = remove(() => (runs++, pass));
  const { client } = await connect({ handlers }, { ...declared, principal: ada });
  const args = { plan: await plan(client) };
  const id = await start(client, args, "remove");
  assertEquals(await start(client, args, "remove"), id);
  open();
  await reach(client, id, "completed");
  assertEquals(await start(client, args, "remove"), id);
  assertEquals(runs, 1);
}, { eras: ["modern"] });

behaviour("a task whose plan is no longer true fails", async (connect) => {
  let state = 1;
  const handlers = remove(() => "removed", () => ({ state }));
  const { client } = await connect({ handlers }, { ...declared, principal: ada });
  const args = { plan: await plan(client) };
  state = 2;
  const id = await start(client, args, "remove");
  const { result } = await reach(client, id, "completed");
  assertEquals([Object(result).isError, textOf(Object(result)).includes("state: 1 is now 2")], [true, true]);
}, { eras: ["modern"] });

for (const isExpired of [false, true]) {
  Deno.test(`another instance continues a task with a plan${isExpired ? " that has expired" : ""}`, async () => {
    const clock = fakeClock();
    const shared = memoryStore(isExpired ? { clock } : {});
    const runs: string[] = [];
    const serve = (name: string, store: Store, end: Promise<void> | undefined) =>
      openServer({
        // The first run has changed what the plan says.
        handlers: remove(() => (runs.push(name), end), () => ({ runs: runs.length })),
        store,
        ...isExpired && { clock },
        limits: { calls: { closeMs: 500, timeoutMs: Infinity } },
        observer: { fault() {}, store() {} },
      });
    const first = serve("first", openShared(shared), new Promise(() => {}));
    const client = await connectTest(first, { ...declared, principal: ada });
    const id = await start(client, { plan: await plan(client) }, "remove");
    await until(() => runs.length === 1, "the first instance runs the task");
    // While the tool runs, the server remembers for longer that the plan was used.
    for (let s = 0; isExpired && s <= 600; s += 10) await clock.advance(10_000);
    await client.close();
    await advanceUntil(clock, 100, first.close());
    const second = serve("second", openShared(shared), undefined);
    const other = await connectTest(second, { ...declared, principal: ada });
    const { result } = await advanceUntil(clock, 1000, reach(other, id, "completed"));
    assertEquals([textOf(Object(result)), runs], ["undefined", ["first", "second"]]);
    await other.close();
    await advanceUntil(clock, 100, second.close());
  });
}
