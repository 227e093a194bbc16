// A server has one tasks extension, however many handlers bring one.
import { assertEquals, assertThrows } from "@std/assert";
import { createServer, tool } from "../../mod.ts";
import { task, tasks } from "../../src/extensions/tasks/tasks.ts";
import { layer } from "../../src/layers/layers.ts";
import { proxy } from "../../src/proxy/proxy.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { declared } from "./declared.ts";
import { reach, start } from "./requests.ts";

const modern = { eras: ["modern"] } as const;

/** A tool that brings an extension of its own. */
function bringing(name: string, jobs = tasks()) {
  const brings = layer(() => ({ name: `brings ${name}`, handlers: [jobs] }));
  return tool({ name, use: [task(), brings], run: () => `${name} done` });
}

const upstream = (name: string) =>
  createServer({ name, version: "1.0.0", handlers: [tool({ name, run: () => name })] });

behaviour("the author's tasks() serves beside handlers that bring one, in any order", async (connect) => {
  for (const isFirst of [true, false]) {
    const jobs = tasks();
    const others = [
      bringing("a"),
      bringing("b"),
      proxy(upstream("one"), { prefix: "one_" }),
      proxy(upstream("two"), { prefix: "two_" }),
    ];
    const { client, server } = await connect({ handlers: isFirst ? [jobs, ...others] : [...others, jobs] }, declared);
    for (const name of ["a", "b"]) {
      const id = await start(client, {}, name);
      assertEquals(textOf(Object((await reach(client, id, "completed")).result)), `${name} done`);
      assertEquals((await jobs.get(id))?.tool, name);
    }
    await server.close();
  }
}, modern);

behaviour("handlers that bring a tasks extension share one, also when one of them is removed", async (connect) => {
  const [a, b] = [bringing("a"), bringing("b")];
  const { client, server } = await connect({ handlers: [a, b] }, declared);
  const id = await start(client, {}, "b");
  await reach(client, id, "completed");
  server.handlers.remove(a);
  const other = await start(client, {}, "b");
  await reach(client, other, "completed");
}, modern);

behaviour("the same tasks() can be passed and be brought", async (connect) => {
  const jobs = tasks();
  const own = tool({ name: "own", use: [task()], run: () => "done" });
  for (const isFirst of [true, false]) {
    const brings = bringing("a", jobs);
    const handlers = isFirst ? [jobs, brings, own] : [brings, jobs, own];
    const { client, server } = await connect({ handlers }, declared);
    await reach(client, await start(client, {}, "a"), "completed");
    server.handlers.remove(brings);
    await reach(client, await start(client, {}, "own"), "completed");
    await server.close();
  }
}, modern);

behaviour("tasks() that was passed and removed is removed again with the handler that brings it", async (connect) => {
  const jobs = tasks();
  const { client, server } = await connect({ handlers: [jobs, tool({ name: "other", run: () => "done" })] }, declared);
  server.handlers.remove(jobs);
  const brings = bringing("a", jobs);
  server.handlers.add(brings);
  await reach(client, await start(client, {}, "a"), "completed");
  server.handlers.remove(brings);
  const work = tool({ name: "work", use: [task()], run: () => "done" });
  assertThrows(() => server.handlers.add(work), TypeError, sentence("tasks()"));
}, modern);

behaviour("tasks() that is added later replaces the extension of a proxy, until it is removed", async (connect) => {
  const { client, server } = await connect({ handlers: [proxy(upstream("one"))] }, declared);
  const jobs = tasks();
  const work = tool({ name: "work", use: [task()], run: () => "done" });
  assertThrows(() => server.handlers.add(work), TypeError, sentence("tasks()"));
  server.handlers.add(jobs, work);
  const id = await start(client);
  await reach(client, id, "completed");
  assertEquals((await jobs.get(id))?.status, "completed");
  server.handlers.remove(work, jobs);
  assertEquals(textOf(await client.callTool("one")), "one");
}, modern);

Deno.test("an author cannot add two tasks()", () => {
  const options = { name: "two", version: "1.0.0", handlers: [tasks(), tasks()] };
  assertThrows(() => createServer(options), TypeError, sentence("already registered"));
});
