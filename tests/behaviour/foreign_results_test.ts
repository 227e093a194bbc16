// Results and errors that come from another server: what only this server can set does not pass.
import { assertEquals } from "@std/assert";
import { prompt, resource, tool, ToolError, toolProvider } from "../../mod.ts";
import { behaviour, textOf } from "../support/behaviour.ts";

const SERVER = "io.modelcontextprotocol/serverInfo";
const _meta = { [SERVER]: { name: "other", version: "1" }, "io.modelcontextprotocol/x": 1, "example.com/kept": 2 };
const foreign = { resultType: "complete", _meta };

behaviour(
  "a result from another server keeps its metadata, but no reserved key and no result type",
  async (join, { era }) => {
    const content = [{ type: "text" as const, text: "x" }];
    const messages = [{ role: "user" as const, content: content[0] }];
    const contents = [{ uri: "other://1", text: "x" }];
    const schema = { type: "object" } as const;
    const handlers = [
      tool({ name: "plain", run: () => ({ ...foreign, content }) }),
      tool({ name: "typed", output: schema, run: () => ({ ...foreign, content, structuredContent: { a: 1 } }) }),
      tool({ name: "failed", run: () => ({ ...foreign, content, isError: true }) }),
      tool({ name: "bare", run: () => ({ content, resultType: "task", _meta: { "io.modelcontextprotocol/y": 1 } }) }),
      tool.from({ name: "listed", inputSchema: schema }, () => ({ ...foreign, content })),
      prompt({ name: "asked", run: () => ({ ...foreign, messages }) }),
      prompt.from({ name: "listed" }, () => ({ ...foreign, messages })),
      resource.from({ name: "other", uri: "other://1" }, () => ({ ...foreign, contents })),
    ];
    const { client } = await join({ name: "own", handlers });
    const results = [];
    for (const name of ["plain", "typed", "failed", "bare", "listed"]) results.push(await client.callTool(name));
    for (const name of ["asked", "listed"]) results.push(await client.getPrompt(name));
    results.push(await client.readResource("other://1"));
    const kept = { "example.com/kept": 2 };
    for (const [at, { _meta, resultType }] of results.entries()) {
      const { [SERVER]: info, ...others } = Object(_meta);
      assertEquals([Object(info).name, resultType], era === "modern" ? ["own", "complete"] : [undefined, undefined]);
      assertEquals(others, at === 3 ? {} : kept);
    }
  },
);

behaviour("a ToolError from find is a result that the model reads", async (join) => {
  const down = toolProvider({
    find() {
      throw new ToolError("The archive does not answer; try again later");
    },
  });
  const { client } = await join({ handlers: [down] });
  const result = await client.callTool("archive", { a: 1 });
  assertEquals([result.isError, textOf(result)], [true, "The archive does not answer; try again later"]);
});
