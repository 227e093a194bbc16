// The example of layers that add arguments, in both eras.
import { assert, assertEquals } from "@std/assert";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import server from "../../examples/reasons.ts";
import { textOf } from "../support/behaviour.ts";
import { patch } from "../support/patch.ts";

/** Reads all open issues, and previews and closes one of them. */
async function useTracker(client: Connection, id: number): Promise<void> {
  const task = { task_at_hand: "Clean up the tracker" };
  const [list, close] = await client.listTools();
  assertEquals(Object.keys(Object(list.inputSchema.properties)), ["state", "task_at_hand", "more"]);
  assertEquals(Object.keys(Object(close.inputSchema.properties)), ["id", "task_at_hand", "dry_run"]);
  const ids: number[] = [];
  let next: string | undefined;
  let pages = 0;
  do {
    const args = { state: "open", ...task, ...next && { more: next } };
    const { structuredContent } = await client.callTool("list_issues", args);
    const { issues, more } = Object(structuredContent);
    ids.push(...issues.map((issue: { readonly id: number }) => issue.id));
    next = more?.next;
    pages++;
  } while (next);
  assert(pages > 1 && ids.includes(id), `${pages} pages`);
  const call = async (args: Record<string, unknown>) =>
    textOf(await client.callTool("close_issue", { id, ...task, ...args }));
  assertEquals(await call({ dry_run: true }), `Would close issue ${id}.`);
  assertEquals(await call({}), `Closed issue ${id}.`);
  assertEquals(await call({}), `There is no open issue ${id}.`);
}

for (const [at, era] of (["modern", "legacy"] as const).entries()) {
  Deno.test(`reasons: the model reads pages, previews and closes, and the log has its task (${era})`, async () => {
    const lines: string[] = [];
    using _console = patch(console, { error: (line: string) => void lines.push(line) });
    const client = await connectTest(server, { era });
    await useTracker(client, at + 1);
    await client.close();
    const noted = lines.filter((line) => line.includes('"notes":{"task_at_hand":"Clean up the tracker"}'));
    assert(noted.length >= 5, lines.join("\n"));
  });
}
