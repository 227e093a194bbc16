// Lists the modules of the project that an entry loads.
const root = new URL("../../", import.meta.url);

interface Module {
  readonly specifier: string;
  readonly dependencies?: readonly { readonly isDynamic?: boolean; readonly code?: { readonly specifier: string } }[];
}

/** Returns the paths of an entry, such as `mod.ts`, and of all modules that it loads. Deno only. */
export async function listModules(entry: string): Promise<readonly string[]> {
  const args = ["info", "--json", new URL(entry, root).pathname];
  const { stdout } = await new Deno.Command(Deno.execPath(), { args }).output();
  const { modules }: { modules: readonly Module[] } = JSON.parse(new TextDecoder().decode(stdout));
  const found = new Set<string>([new URL(entry, root).href]);
  for (const url of found) {
    const { dependencies = [] } = modules.find(({ specifier }) => specifier === url) ?? {};
    // Type-only imports have no `code`, and dynamic imports are not loaded with the module.
    for (const { code, isDynamic } of dependencies) if (code && !isDynamic) found.add(code.specifier);
  }
  return [...found].map((url) => url.replace(root.href, ""));
}
