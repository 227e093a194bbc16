// A server whose tool calls become tasks.
import { createServer, McpError, tool } from "@x/mcp";
import { task, tasks } from "@x/mcp/tasks";

const use = [task({ pollIntervalMs: 100 })];
const markup = `<b onclick="document.title='broken'">Writing</b>`;
let cancelled = 0;

const write = tool({
  name: "write",
  use,
  async run(_input, ctx) {
    await ctx.progress(1, { message: markup });
    const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const { action, content } = await ctx.elicit("name", { message: "For whom?", schema });
    return action === "accept" ? `A letter for ${Object(content).name}` : action;
  },
});

const fail = tool({
  name: "fail",
  use,
  run: () => {
    throw new McpError(-31001, "No paper");
  },
});

const endless = tool({
  name: "endless",
  use,
  async run(_input, ctx) {
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
    cancelled++;
  },
});

const count = tool({ name: "count", run: () => `${cancelled} cancelled` });

export default createServer({ name: "tasks", version: "1.0.0", handlers: [tasks(), write, fail, endless, count] });
