// A tool that takes a while, and asks the user during its run: `deno run -A mod.ts examples/press.ts`. Clients that
// support tasks get a handle immediately. With PRESS_DB, tasks are stored in a file, and continue after the server was
// killed and started again.
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
  description: "Renders a document page by page, asks, and publishes it",
  input: z.object({ title: z.string(), pages: z.number().int().min(1).max(100).default(3) }),
  extensions: [task({ resume: true, pollIntervalMs: 500, version: "1" })],
  async run({ title, pages }, ctx) {
    const files: string[] = [];
    for (let page = 1; page <= pages; page++) {
      await ctx.progress(page, { total: pages, message: `Rendering page ${page} of ${pages}` });
      // `once`, so that a finished page is not rendered again.
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

/** Without permission to read variables, tasks are kept in memory. */
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
