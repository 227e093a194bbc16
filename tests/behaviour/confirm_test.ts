// Tools that ask the user for confirmation.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { service, tool, ToolError } from "../../mod.ts";
import { cache, confirm } from "../../src/layers/layers.ts";
import { behaviour, raise, textOf } from "../support/behaviour.ts";
import { z } from "zod";
import { sentence } from "../support/messages.ts";

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
    use: [confirm(({ path }, { services }) => `Delete ${path} in ${services.tx}?`)],
    run: ({ path }) => {
      ran.push(path);
      return `deleted ${path}`;
    },
  });
  const wipe = tool({ name: "wipe", use: [confirm("Delete all?")], run: () => "wiped" });
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
  assertEquals(textOf(declined), sentence("remove"));
  action = "cancel";
  assertEquals(textOf(await client.callTool("wipe")), sentence("wipe"));
  assertEquals(ran, ["a", "a"]);
});

behaviour(
  "a tool with a confirmation returns an error that states why, if the client cannot be asked",
  async (connect) => {
    let ran = 0;
    const wipe = tool({
      name: "wipe",
      annotations: { readOnlyHint: true },
      use: [cache({ ttlMs: 60_000, shared: true }), confirm("Delete all?")],
      run: () => ++ran,
    });
    const { client, join } = await connect({ handlers: [wipe] });
    const refused = await client.callTool("wipe");
    assert(refused.isError);
    assertEquals(textOf(refused), sentence("wipe"));
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
  const make = (name: string, question: () => string) => tool({ name, use: [confirm(question)], run: () => ++ran });
  const { client, takeFaults } = await connect({
    handlers: [
      make("nothing", () => undefined as never),
      make("yes", () => true as never),
      make("empty", () => ""),
      make("fails", () => raise(new RangeError("bug"))),
      make("refuses", () => raise(new ToolError("There are no notes."))),
    ],
  }, { onElicit: () => ({ action: "accept", content: {} }) });
  for (const name of ["nothing", "yes", "empty", "fails"]) {
    const text = textOf(await client.callTool(name));
    const [{ id }] = takeFaults();
    assertStringIncludes(text, `${sentence()} (${id})`, name);
  }
  assertEquals(textOf(await client.callTool("refuses")), "There are no notes.");
  assertEquals(ran, 0);
});

behaviour("a tool whose confirmation does not return a string never runs", async (connect) => {
  let ran = 0;
  const handlers = [true, 5, {}, [], "", null, false].map((question, i) =>
    tool({ name: `t${i}`, use: [confirm(question as never)], run: () => ++ran })
  );
  const { client, takeFaults } = await connect({ handlers }, { onElicit: () => ({ action: "accept", content: {} }) });
  for (const { name } of handlers) {
    const text = textOf(await client.callTool(name));
    const [{ id }] = takeFaults();
    assertStringIncludes(text, `${sentence()} (${id})`, name);
  }
  assertEquals(ran, 0);
});

behaviour("several layers ask for consent one after the other, and each consent counts once", async (connect) => {
  const asked: string[] = [];
  let answers: ("accept" | "decline")[] = [];
  let ran = 0;
  const wipe = tool({ name: "wipe", use: [confirm("Delete all?"), confirm("Really?")], run: () => ++ran });
  const { client } = await connect({ handlers: [wipe], use: [confirm("May the assistant run a tool?")] }, {
    onElicit: ({ message }) => {
      asked.push(message);
      const action = answers.shift()!;
      return action === "accept" ? { action, content: {} } : { action };
    },
  });
  const all = ["May the assistant run a tool?", "Delete all?", "Really?"];
  for (let run = 1; run <= 2; run++) {
    asked.length = 0;
    answers = ["accept", "accept", "accept"];
    assertEquals(textOf(await client.callTool("wipe")), String(run));
    assertEquals(asked, all);
  }
  for (let accepted = 0; accepted < 3; accepted++) {
    asked.length = 0;
    answers = [...Array(accepted).fill("accept"), "decline"];
    assert((await client.callTool("wipe")).isError);
    assertEquals(asked, all.slice(0, accepted + 1));
  }
  assertEquals(ran, 2);
});
