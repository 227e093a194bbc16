// A server with many tools: clients search for tools instead of reading a list of all of them. `whoami` stays in the
// list. A caller finds only the tools that it can call.
import { createServer, tool } from "@x/mcp";
import { confirm } from "@x/mcp/layers";
import { toolSearch } from "@x/mcp/search";
import { z } from "zod";

const repository = z.string().describe("Name of the repository, such as acme/shop");
const kinds = ["issue", "label", "branch", "release", "webhook", "milestone", "secret", "deployment"];

const tools = kinds.flatMap((kind) => [
  tool({
    name: `list_${kind}s`,
    title: `List ${kind}s`,
    description: `Lists the ${kind}s of a repository`,
    input: z.object({ repository }),
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
    run: ({ repository }) => `The ${kind}s of ${repository}: none yet.`,
  }),
  tool({
    name: `create_${kind}`,
    title: `Create a ${kind}`,
    description: `Creates a ${kind} in a repository`,
    // Words of the users that are neither in the name nor in the description.
    about: kind === "issue" ? ["ticket", "bug"] : [],
    input: z.object({ repository, name: z.string().describe(`Name of the ${kind}`) }),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    run: ({ repository, name }) => `Created the ${kind} ${name} in ${repository}.`,
  }),
  tool({
    name: `delete_${kind}`,
    title: `Delete a ${kind}`,
    description: `Deletes a ${kind} of a repository`,
    input: z.object({ repository, name: z.string().describe(`Name of the ${kind}`) }),
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    use: [confirm(({ name }) => `Delete the ${kind} ${name}?`)],
    allow: (ctx) => kind !== "secret" || ctx.principal?.id === "ada",
    run: ({ repository, name }) => `Deleted the ${kind} ${name} of ${repository}.`,
  }),
]);

const whoami = tool({
  name: "whoami",
  title: "Who am I?",
  description: "Names the caller",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: (_input, ctx) => ctx.principal?.id ?? "nobody",
});

export default createServer({
  name: "tracker",
  version: "1.0.0",
  handlers: [whoami, ...tools, toolSearch({ always: ["whoami"] })],
});
