// An era whose code is loaded when its first message arrives. Loading may fail, and the code may throw.
import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import type { Era } from "../../src/server/engine/era.ts";
import type { Link } from "../../src/server/call/link.ts";
import type { Incoming } from "../../src/core/protocol/jsonrpc.ts";
import { LazyEra, LazySessionEra } from "../../src/server/eras/eras.ts";
import { buildServer } from "../../src/server/server.ts";
import { openPipe } from "../../src/server/transports/channel.ts";
import { soon, toCall } from "../hostile/attack.ts";
import { raise, until } from "../support/behaviour.ts";

const message: Incoming = { kind: "request", id: 1, method: "ping", weight: 0 };
const link = {} as Link; // The cast is safe, because no test reads this value.

/** Creates an era whose code loads only on the second attempt. */
function failOnce<T extends LazyEra>(create: new (load: () => Promise<Era>) => T, era: Era): T {
  let attempts = 0;
  return new create(async () => {
    await undefined;
    if (!attempts++) throw new Error("too many open files");
    return era;
  });
}

Deno.test("if loading an era fails, the next message retries it", async () => {
  const era = failOnce(LazyEra, { accept: () => ({ text: "ready" }) });
  for (const reply of [era.accept(message, link), era.accept(message, link)]) {
    await assertRejects(() => Promise.resolve(reply), Error, "too many open files");
  }
  assertEquals(await soon(Promise.resolve(era.accept(message, link))), { text: "ready" });
  assertEquals(era.accept(message, link), { text: "ready" });
});

Deno.test("after loading has failed, a later request can open a stream", async () => {
  const era = failOnce(LazySessionEra, { accept: () => ({}), attach: () => ({ status: 200 }) });
  await assertRejects(() => era.attach(link), Error, "too many open files");
  assertEquals(await era.attach(link), { status: 200 });
  assertEquals(await era.detach(link), {});
});

Deno.test("after a message throws, the next message is accepted, in order", async () => {
  const seen: number[] = [];
  const era = new LazyEra(() =>
    Promise.resolve({
      accept({ id }: { readonly id: number }) {
        if (id === 1) throw new Error("on purpose");
        seen.push(id);
        return { text: `${id}` };
      },
    } as unknown as Era)
  );
  const replies = [1, 2, 3].map((id) => Promise.resolve(era.accept({ ...message, id } as Incoming, link)));
  await assertRejects(() => replies[0], Error, "on purpose");
  assertEquals(await soon(Promise.all(replies.slice(1))), [{ text: "2" }, { text: "3" }]);
  assertEquals(seen, [2, 3]);
});

for (const isLazy of [true, false]) {
  Deno.test(`an error that an era throws ${isLazy ? "while it loads" : "after it has loaded"} becomes an internal error`, async () => {
    const faults: unknown[] = [];
    const era: Era = { accept: () => raise(new Error("on purpose")) };
    const observer = { fault: ({ error }: { readonly error: unknown }) => void faults.push(error) };
    const options = { name: "throws", version: "1.0.0", observer };
    const server = buildServer(options, () => isLazy ? new LazyEra(() => Promise.resolve(era)) : era);
    const written: string[] = [];
    const pipe = openPipe(server, { write: (text) => void written.push(text) });
    for (const id of [1, 2]) pipe.receive(JSON.stringify({ jsonrpc: "2.0", id, method: "ping" }));
    const response = await soon(server.fetch(toCall("quick")));
    assertStringIncludes(await response?.text() ?? "", "-32603");
    await until(() => written.length === 2, "both responses");
    assertEquals(written.map((text) => [JSON.parse(text).id, JSON.parse(text).error.code]), [[1, -32603], [2, -32603]]);
    pipe.close();
    await server.close();
    assertEquals(faults.length, 3);
  });
}
