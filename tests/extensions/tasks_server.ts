// The tools that the task scenarios of the official conformance suite ask for.
import { createServer, McpError, tool } from "@x/mcp";
import { z } from "zod";
import { createTasks } from "./durable_tasks.ts";

const { extension, attribute } = createTasks();
const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
const yes = z.object({ confirm: z.boolean().optional() });

export const server = createServer({
  name: "tasks",
  version: "1.0.0",
  handlers: [
    extension,
    tool({
      name: "greet",
      description: "Greets",
      input: z.object({ name: z.string().default("you") }),
      run: ({ name }) => `Hello, ${name}!`,
    }),
    tool({
      name: "slow_compute",
      description: "Sleeps",
      input: z.object({ seconds: z.number().default(1), label: z.string().default("") }),
      extensions: [attribute()],
      async run({ seconds, label }, { signal }) {
        await pause(seconds * 1000, signal);
        return `computed ${label}`;
      },
    }),
    tool({
      name: "failing_job",
      description: "Fails",
      extensions: [attribute({ required: true })],
      async run(_input, { signal }) {
        await pause(1000, signal);
        throw new Error("The job failed");
      },
    }),
    tool({
      name: "protocol_error_job",
      description: "Fails with an error of the protocol",
      extensions: [attribute()],
      async run(_input, { signal }) {
        await pause(100, signal);
        throw McpError.internalError("The job failed");
      },
    }),
    tool({
      name: "confirm_delete",
      description: "Asks before it deletes",
      input: z.object({ filename: z.string().default("a") }),
      extensions: [attribute()],
      async run({ filename }, ctx) {
        const { action } = await ctx.elicit("confirm", { message: `Delete ${filename}?`, schema: yes });
        return action === "accept" ? `deleted ${filename}` : `kept ${filename}`;
      },
    }),
    tool({
      name: "multi_input",
      description: "Asks twice at once",
      extensions: [attribute()],
      async run(_input, ctx) {
        const ask = (key: string) => ctx.elicit(key, { message: `${key}?`, schema: yes });
        return (await Promise.all([ask("first"), ask("second")])).map(({ action }) => action).join();
      },
    }),
    tool({
      name: "test_tool_with_task",
      description: "Asks, and then becomes a task",
      extensions: [attribute({ after: 20 })],
      async run(_input, ctx) {
        const schema = z.object({ name: z.string() });
        const { content } = await ctx.elicit("user_name", { message: "What is your name?", schema });
        await pause(200, ctx.signal);
        return `Hello, ${content?.name}!`;
      },
    }),
  ],
});

export default server;
