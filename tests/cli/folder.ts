// Runs a server from a config file in a folder outside of the project, on either runtime.
import { load } from "../../src/cli/load.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { type Files, withFolder } from "../support/folder.ts";

export { type Files, root, system, withFolder, writeFiles } from "../support/folder.ts";

/**
 * Runs `use` with a client whose server is configured by a folder's `mcp.jsonc`, or by another target in the folder.
 */
export async function withServer(
  files: Files,
  use: (client: Connection, folder: string) => Promise<void>,
  target = "/mcp.jsonc",
): Promise<void> {
  await withFolder(files, async (folder) => {
    const { server, watch } = await load(folder + target);
    const stop = watch?.();
    try {
      await using client = await connectTest(server);
      await use(client, folder);
    } finally {
      stop?.();
      await server.close();
    }
  });
}

/** Returns the text of a result, and whether the tool failed. */
export function toOutcome(result: { readonly content: readonly unknown[]; readonly isError?: boolean }) {
  // The cast is safe, because a tool of a config file returns text.
  const texts = (result.content as { text?: string }[]).map(({ text }) => text ?? "");
  return { text: texts.join("\n"), isError: result.isError ?? false };
}
