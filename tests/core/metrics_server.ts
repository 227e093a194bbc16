// The server for the random workload of observer_test.ts.
import { createServer, McpError, type Observer, resource, type Server, tool, ToolError } from "@x/mcp";

/** Creates a server whose tools end with every possible outcome. */
export function createCounted(observer: Observer): Server {
  return createServer({
    name: "counted",
    version: "1.0.0",
    observer,
    handlers: [
      tool({ name: "fine", run: () => "fine" }),
      tool({ name: "later", run: () => new Promise<string>((resolve) => setTimeout(resolve, 0, "later")) }),
      tool({
        name: "progress",
        async run(_, ctx) {
          await ctx.progress(1);
          await new Promise((resolve) => setTimeout(resolve, 0));
          return "done";
        },
      }),
      tool({
        name: "wrong",
        run() {
          throw new ToolError("wrong");
        },
      }),
      tool({
        name: "error",
        run() {
          throw new McpError(-31001, "closed");
        },
      }),
      tool({
        name: "fault",
        run() {
          throw new Error("fault");
        },
      }),
      resource({ uri: "note:1", name: "note", read: () => "1" }),
    ],
  });
}
