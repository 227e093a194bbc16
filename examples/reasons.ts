// Layers that add to the tools of an issue tracker: `dry_run`, an argument of a layer of its own, previews a change;
// `intent` asks the model for its task, which the log on standard error contains; and large results come in pages.
//
// Connect to it with `mcp inspect examples/reasons.ts`.
import { createServer, tool } from "@x/mcp";
import { argument, intent, layer, quota } from "@x/mcp/layers";
import { jsonLog } from "@x/mcp/observe";
import { z } from "zod";

interface Issue {
  readonly id: number;
  readonly title: string;
  readonly isOpen: boolean;
}

const issues = new Map<number, Issue>(
  Array.from({ length: 200 }, (_, id) => [id, { id, title: `Issue ${id} of the tracker`, isOpen: id % 3 > 0 }]),
);

const dryRun = argument({
  name: "dry_run",
  schema: z.boolean().describe("Whether to describe the change without making it"),
});

/** Runs the tool only if the model does not ask for a preview. The tool itself does not know the argument. */
const previews = layer<{ readonly id: number }>(() => ({
  name: "previews",
  argument: dryRun,
  rank: "ask",
  run: ({ given, input: { id } }, next) => given(dryRun) ? `Would close issue ${id}.` : next(),
}));

export const list = tool({
  name: "list_issues",
  title: "List issues",
  description: "Lists the open or the closed issues",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: z.object({ state: z.enum(["open", "closed"]) }),
  output: z.object({ issues: z.array(z.object({ id: z.number(), title: z.string(), isOpen: z.boolean() })) }),
  use: [quota({ resultTokens: 1000, onLarge: "more" })],
  run: ({ state }) => ({ issues: [...issues.values()].filter(({ isOpen }) => isOpen === (state === "open")) }),
});

export const close = tool({
  name: "close_issue",
  title: "Close an issue",
  description: "Closes an open issue",
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  input: z.object({ id: z.number() }),
  use: [previews],
  run({ id }) {
    const issue = issues.get(id);
    if (!issue?.isOpen) return `There is no open issue ${id}.`;
    issues.set(id, { ...issue, isOpen: false });
    return `Closed issue ${id}.`;
  },
});

export default createServer({
  name: "tracker",
  version: "1.0.0",
  handlers: [list, close],
  use: [intent()],
  observer: jsonLog(),
});
