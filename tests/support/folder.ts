// A folder of files outside of the project, and a server from a config file in it, on either runtime.
import { platform } from "../../src/cli/platform.ts";
import { spawn } from "../../src/cli/platform_process.ts";
import { load } from "../../src/cli/load.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";

/** The project's folder, ending in a slash. */
export const root: string = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** Runs a system program to its end; throws if it fails. */
export async function system(...words: string[]): Promise<string> {
  const child = await spawn(words, { cwd: "/", env: { PATH: platform.env("PATH") ?? "" } });
  const [code, text] = await Promise.all([
    child.ended,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (code !== 0) throw new Error(`"${words.join(" ")}" ended with ${code}`);
  return text.trim();
}

/** Files by their paths. Content other than a string is written as JSON; `"@x/mcp"` resolves to this project. */
export type Files = Readonly<Record<string, unknown>>;

/** Writes files into a folder. */
export async function writeFiles(folder: string, files: Files): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    const path = `${folder}/${name}`;
    await platform.files.makeFolder(path.replace(/\/[^/]*$/, ""));
    const text = typeof content === "string" ? content : JSON.stringify(content);
    await platform.files.write(path, text.replaceAll('from "@x/mcp"', `from ${JSON.stringify(`${root}mod.ts`)}`));
  }
}

/** A new folder with files in it, removed on disposal. Its path contains no links. */
export async function withFolder(files: Files, use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await platform.files.resolve(await system("mktemp", "-d", "-t", "mcp-files-XXXXXX")) ?? "";
  try {
    await writeFiles(folder, files);
    await use(folder);
  } finally {
    await system("rm", "-rf", folder);
  }
}

/** A client of a server configured by a folder's `mcp.jsonc`, or by another target in it. */
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

/** The text of a result, and whether the tool failed. */
export function toOutcome(result: { readonly content: readonly unknown[]; readonly isError?: boolean }) {
  // Tools of config files return text, if a test calls one.
  const texts = (result.content as { text?: string }[]).map(({ text }) => text ?? "");
  return { text: texts.join("\n"), isError: result.isError ?? false };
}
