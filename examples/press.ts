// A long-running tool that asks the user a question: `deno run -A mod.ts examples/press.ts`. Clients that support tasks
// get a task handle immediately. If PRESS_DB is the path of a SQLite file, the server stores tasks in the file, and
// continues the tasks after a crash and restart.
import process from "node:process";
import { createServer, tool } from "@x/mcp";
import { sqliteStore } from "@x/mcp/stores/sqlite";
import { task, tasks } from "@x/mcp/tasks";
import { z } from "zod";

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

const publish = tool({
  name: "publish",
  title: "Publish a book",
  description: "Renders a document page by page, and publishes it if the user agrees",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  input: z.object({ title: z.string(), pages: z.number().int().min(1).max(100).default(3) }),
  use: [task({ resume: true, pollIntervalMs: 500, version: "1" })],
  async run({ title, pages }, ctx) {
    const files: string[] = [];
    for (let page = 1; page <= pages; page++) {
      await ctx.progress(page, { total: pages, message: `Rendering page ${page} of ${pages}` });
      // With `once`, a finished page is not rendered again when this function runs again.
      files.push(
        await ctx.once(`page ${page}`, async () => {
          await pause(300, ctx.signal);
          return `${title}-${page}.svg`;
        }),
      );
    }
    const { action } = await ctx.elicit("publish", {
      message: `Publish ${files.length} pages of "${title}"?`,
      schema: z.object({}),
    });
    return action === "accept" ? `Published ${files.join(", ")}` : `Kept ${files.join(", ")}`;
  },
});

/** Returns `undefined` without permission to read variables. In this case, the server keeps tasks in memory. */
function readVariable(name: string): string | undefined {
  try {
    return process.env[name];
  } catch {
    return undefined;
  }
}

const path = readVariable("PRESS_DB");

export default createServer({
  name: "press",
  version: "1.0.0",
  handlers: [tasks(), publish],
  secret: readVariable("PRESS_SECRET"),
  store: path === undefined ? undefined : sqliteStore(async () => {
    const { DatabaseSync } = await import("node:sqlite");
    return new DatabaseSync(path);
  }),
});
