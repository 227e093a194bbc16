// A client that declares the tasks extension, and gets its messages unchanged.
import { clientExtension } from "../../src/client/client.ts";
import type { ConnectTestOptions } from "../../src/testing/testing.ts";
import { z } from "zod";

export const ID = "io.modelcontextprotocol/tasks";

const taskId = "taskId";

/** Options for a client that declares the tasks extension. */
export const declared = {
  extensions: [clientExtension({
    id: ID,
    subjects: { "tasks/get": taskId, "tasks/update": taskId, "tasks/cancel": taskId },
    results: { task: { schema: z.object({ taskId: z.string() }), finish: () => ({ content: [] }) } },
  })],
} satisfies ConnectTestOptions;

/** Options for a client that declares the tasks extension and can answer forms. */
export const asking = { ...declared, capabilities: { elicitation: {} } } satisfies ConnectTestOptions;
