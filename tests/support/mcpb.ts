// Finds the validator for MCPB bundles, which is downloaded once into the temporary folder. Deno only.
const VERSION = "2.1.2";

/** Returns the path of the validator, which Node runs, or the reason why the validator is missing. */
export async function findMcpb(): Promise<{ readonly path: string } | { readonly missing: string }> {
  const folder = `${Deno.env.get("TMPDIR") ?? "/tmp"}/x-mcp-mcpb-${VERSION}-${Deno.uid()}`;
  const path = `${folder}/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js`;
  if (await Deno.stat(path).then(({ isFile }) => isFile, () => false)) return { path };
  // Another process may download the validator at the same time, so rename the folder to its final name only when it is
  // complete.
  const made = await Deno.makeTempDir({ prefix: "mcp-mcpb-" });
  const args = ["install", "--silent", "--no-audit", "--no-fund", "--prefix", made, `@anthropic-ai/mcpb@${VERSION}`];
  const { success } = await new Deno.Command("npm", { args, cwd: made }).output().catch(() => ({ success: false }));
  if (!success) {
    await Deno.remove(made, { recursive: true });
    return { missing: `@anthropic-ai/mcpb ${VERSION} cannot be downloaded with npm` };
  }
  await Deno.rename(made, folder).catch(() => Deno.remove(made, { recursive: true }));
  return { path };
}
