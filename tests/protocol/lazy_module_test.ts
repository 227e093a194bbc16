// A part of the library that is loaded when it is first needed.
import { assertEquals, assertRejects } from "@std/assert";
import { LazyModule } from "../../src/core/protocol/lazy_module.ts";

Deno.test("a module is loaded once, even for callers that arrive while it loads", async () => {
  let loads = 0;
  const loading = Promise.withResolvers<string>();
  const part = new LazyModule(() => {
    loads++;
    return loading.promise;
  });
  const all = Promise.all([part.load(), part.load()]);
  assertEquals(part.loaded, undefined);
  loading.resolve("loaded");
  assertEquals(await all, ["loaded", "loaded"]);
  assertEquals([part.loaded, await part.load(), loads], ["loaded", "loaded", 1]);
});

Deno.test("if loading a module failed, the next caller loads the module again", async () => {
  let loads = 0;
  const part = new LazyModule(() => ++loads < 3 ? Promise.reject(new Error("gone")) : Promise.resolve(loads));
  const [first, second] = [part.load(), part.load()];
  await assertRejects(() => first, Error, "gone");
  await assertRejects(() => second, Error, "gone");
  await assertRejects(() => part.load(), Error, "gone");
  assertEquals(part.loaded, undefined);
  assertEquals(await part.load(), 3);
  assertEquals(part.loaded, 3);
});

Deno.test("callers that arrive after a module has loaded do not overtake callers that waited for the module", async () => {
  const order: number[] = [];
  const loading = Promise.withResolvers<number>();
  const part = new LazyModule(() => loading.promise);
  for (const at of [1, 2, 3]) part.load().then(() => order.push(at));
  loading.resolve(0);
  while (part.loaded === undefined) await undefined;
  order.push(4);
  assertEquals(order, [1, 2, 3, 4]);
  await part.load();
});
