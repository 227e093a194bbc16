// A part of the library, a "room", that is loaded when it is first needed.
import { assertEquals, assertRejects } from "@std/assert";
import { Room } from "../../src/core/protocol/room.ts";

Deno.test("a room is loaded once, even for callers that arrive while it loads", async () => {
  let loads = 0;
  const loading = Promise.withResolvers<string>();
  const room = new Room(() => {
    loads++;
    return loading.promise;
  });
  const all = Promise.all([room.open(), room.open()]);
  assertEquals(room.loaded, undefined);
  loading.resolve("loaded");
  assertEquals(await all, ["loaded", "loaded"]);
  assertEquals([room.loaded, await room.open(), loads], ["loaded", "loaded", 1]);
});

Deno.test("if loading a room failed, the next caller loads the room again", async () => {
  let loads = 0;
  const room = new Room(() => ++loads < 3 ? Promise.reject(new Error("gone")) : Promise.resolve(loads));
  const [first, second] = [room.open(), room.open()];
  await assertRejects(() => first, Error, "gone");
  await assertRejects(() => second, Error, "gone");
  await assertRejects(() => room.open(), Error, "gone");
  assertEquals(room.loaded, undefined);
  assertEquals(await room.open(), 3);
  assertEquals(room.loaded, 3);
});

Deno.test("callers that arrive after a room has loaded do not overtake callers that waited for the room", async () => {
  const order: number[] = [];
  const loading = Promise.withResolvers<number>();
  const room = new Room(() => loading.promise);
  for (const at of [1, 2, 3]) room.open().then(() => order.push(at));
  loading.resolve(0);
  while (room.loaded === undefined) await undefined;
  order.push(4);
  assertEquals(order, [1, 2, 3, 4]);
  await room.open();
});
