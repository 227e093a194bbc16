// Tools that ask the user for confirmation.
import { assert, assertEquals, assertMatch } from "@std/assert";
import { service, tool, ToolError } from "../../mod.ts";
import { cache } from "../../src/ready/ready.ts";
import { behaviour, textOf } from "../support/behaviour.ts";
import { z } from "zod";

const input = z.object({ path: z.string().default("notes") });

behaviour("a tool with a confirmation asks before each run, and runs only after the user accepts", async (connect) => {
  const asked: string[] = [];
  const ran: string[] = [];
  const ended: string[] = [];
  const tx = service("tx", () => "tx", { per: "call", dispose: (_tx, end) => void ended.push(end) });
  const remove = tool({
    name: "remove",
    input,
    services: { tx },
    confirm: ({ path }, { services }) => `Delete ${path} in ${services.tx}?`,
    run: ({ path }) => {
      ran.push(path);
      return `deleted ${path}`;
    },
  });
  const wipe = tool({ name: "wipe", confirm: "Delete all?", run: () => "wiped" });
  let action: "accept" | "decline" | "cancel" = "accept";
  const { client } = await connect({ handlers: [remove, wipe] }, {
    onElicit: ({ message }) => {
      asked.push(message);
      return action === "accept" ? { action, content: {} } : { action };
    },
  });
  assertEquals(textOf(await client.callTool("remove", { path: "a" })), "deleted a");
  assertEquals(textOf(await client.callTool("remove", { path: "a" })), "deleted a");
  assertEquals(textOf(await client.callTool("wipe")), "wiped");
  assertEquals(asked, ["Delete a in tx?", "Delete a in tx?", "Delete all?"]);
  action = "decline";
  const declined = await client.callTool("remove", { path: "b" });
  assert(declined.isError);
  assertMatch(textOf(declined), /^remove did not run: the user declined/);
  action = "cancel";
  assertMatch(textOf(await client.callTool("wipe")), /^wipe did not run: the user closed the question/);
  assertEquals(ran, ["a", "a"]);
});

behaviour(
  "a tool with a confirmation returns an error that states why, if the client cannot be asked",
  async (connect) => {
    let ran = 0;
    const wipe = tool({
      name: "wipe",
      confirm: "Delete all?",
      annotations: { readOnlyHint: true },
      cache: cache({ ttlMs: 60_000 }),
      run: () => ++ran,
    });
    const { client, join } = await connect({ handlers: [wipe] });
    const refused = await client.callTool("wipe");
    assert(refused.isError);
    assertMatch(
      textOf(refused),
      /needs the consent of the user, but this client or this request does not support elicitation/,
    );
    // A result from the cache needs consent too.
    const asking = await join({ onElicit: () => ({ action: "accept", content: {} }) });
    assertEquals(textOf(await asking.callTool("wipe")), "1");
    assert((await client.callTool("wipe")).isError);
    assertEquals(ran, 1);
  },
  { perInstance: "ready" },
);

behaviour("if a confirmation function throws, the call fails and the tool does not run", async (connect) => {
  let ran = 0;
  const make = (name: string, confirm: () => string) => tool({ name, confirm, run: () => ++ran });
  const { client, takeFaults } = await connect({
    handlers: [
      make("nothing", () => undefined as never),
      make("yes", () => true as never),
      make("empty", () => ""),
      make("fails", () => {
        throw new RangeError("bug");
      }),
      make("refuses", () => {
        throw new ToolError("There are no notes.");
      }),
    ],
  }, { onElicit: () => ({ action: "accept", content: {} }) });
  for (const name of ["nothing", "yes", "empty", "fails"]) {
    assertMatch(textOf(await client.callTool(name)), /^Internal error/, name);
  }
  assertEquals(textOf(await client.callTool("refuses")), "There are no notes.");
  assertEquals([ran, takeFaults().length], [0, 4]);
});

behaviour("a tool whose confirmation does not return a string never runs", async (connect) => {
  let ran = 0;
  const handlers = [true, 5, {}, [], "", null, false].map((confirm, i) =>
    tool({ name: `t${i}`, confirm: confirm as never, run: () => ++ran })
  );
  const { client, takeFaults } = await connect({ handlers }, { onElicit: () => ({ action: "accept", content: {} }) });
  for (const { name } of handlers) assertMatch(textOf(await client.callTool(name)), /^Internal error/);
  assertEquals([ran, takeFaults().length], [0, handlers.length]);
});
