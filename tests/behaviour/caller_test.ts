// `ctx.caller` identifies a principal, a session or a connection, but never an address or a header.
import { assert, assertEquals } from "@std/assert";
import { resource, tool } from "../../mod.ts";
import { behaviour } from "../support/behaviour.ts";

/** Returns tools and a resource that write the callers down, also from within an inner call. */
function createNoting() {
  const seen: unknown[] = [];
  const note = tool({ name: "note", run: (_input, { caller }) => void seen.push(caller) });
  const outer = tool({ name: "outer", run: async (_input, ctx) => void await ctx.callTool("note") });
  const read = resource({ uri: "note://caller", name: "read", read: (_uri, { caller }) => (seen.push(caller), "") });
  return { seen, handlers: [note, outer, read] };
}

behaviour("a principal is a caller with the same text everywhere", async (connect) => {
  const { seen, handlers } = createNoting();
  const { client: ada, join } = await connect({ handlers }, { principal: { id: "ada" } });
  const [again, eve] = [await join({ principal: { id: "ada" } }), await join({ principal: { id: "eve" } })];
  for (const client of [ada, again, eve]) await client.callTool("note");
  await ada.callTool("outer");
  await ada.readResource("note://caller");
  const [text] = seen;
  assert(typeof text === "string" && text.includes("ada"));
  assertEquals(seen.map((each) => each === text), [true, true, false, true, true]);
});

behaviour("without a principal, the session or the connection is the caller", async (connect, { era, transport }) => {
  const { seen, handlers } = createNoting();
  const { client, join } = await connect({ handlers });
  const other = await join();
  for (const each of [client, client, other]) await each.callTool("note");
  await client.callTool("outer");
  await client.readResource("note://caller");
  if (era === "modern" && transport !== "pipe") return assertEquals(new Set(seen), new Set([undefined]));
  const [first] = seen;
  assertEquals([typeof first, Object.keys(Object(first)), Object.isFrozen(first)], ["object", [], true]);
  assertEquals(seen.map((each) => each === first), [true, true, false, true, true]);
}, { perInstance: "services" });
