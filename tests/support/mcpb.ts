// Finds the validator for MCPB bundles. Deno only.
import { findPackages } from "./npm_packages.ts";

/** Finds the path of the validator, which Node runs, or the reason why the validator is missing. */
export async function findMcpb(): Promise<{ readonly path: string } | { readonly missing: string }> {
  const found = await findPackages("mcpb", ["@anthropic-ai/mcpb@2.1.2"]);
  return "missing" in found ? found : { path: `${found.folder}/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js` };
}
