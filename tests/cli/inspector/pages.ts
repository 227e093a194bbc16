// A server whose tools are listed in three pages.
import { createServer, tool } from "@x/mcp";
import { testLimits } from "../../support/limits.ts";

const tools = Array.from({ length: 5 }, (_, at) => tool({ name: `tool_${at + 1}`, run: () => `This is ${at + 1}.` }));

export default createServer({
  name: "pages",
  version: "1.0.0",
  limits: testLimits({ calls: { pageItems: 2 } }),
  handlers: tools,
});
