// Counts what one tools/call runs: the functions of the library that V8 saw called at least once per call, found as the
// difference between a run of few calls and a run of many. `deno run -A tests/budget_calls.ts` lists them.

/** The functions of the library that every call runs, as `src/core/dispatch.ts run:1024` (name and offset). */
export async function listCalledFunctions(): Promise<string[]> {
  const many = 1000;
  const before = await countExecutions(10); // the first calls also compile and fill caches
  const after = await countExecutions(10 + many);
  return [...after].filter(([key, count]) => count - (before.get(key) ?? 0) >= many).map(([key]) => key).sort();
}

/** The file of a function that `listCalledFunctions` returned. */
export function toFile(key: string): string {
  return key.split(" ")[0];
}

interface Coverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

/** How often each function of src/ and mod.ts ran while a process made `calls` calls. */
async function countExecutions(calls: number): Promise<Map<string, number>> {
  const root = new URL("../", import.meta.url);
  const folder = await Deno.makeTempDir();
  try {
    const { success, stderr } = await new Deno.Command("deno", {
      args: ["run", "-A", "--no-check", `--coverage=${folder}`, "tests/budget_workload.ts", String(calls)],
      cwd: root,
      env: { NO_COLOR: "1" },
    }).output();
    if (!success) throw new Error(`Cannot count: the calls failed\n${new TextDecoder().decode(stderr)}`);
    const counts = new Map<string, number>();
    for await (const { name } of Deno.readDir(folder)) {
      if (!name.endsWith(".json")) continue;
      const { url, functions }: Coverage = JSON.parse(await Deno.readTextFile(`${folder}/${name}`));
      const path = url.startsWith(root.href) ? url.slice(root.href.length) : "";
      if (!path.startsWith("src/") && path !== "mod.ts") continue;
      for (const { functionName, ranges: [{ startOffset, count }] } of functions) {
        counts.set(`${path} ${functionName || "(anonymous)"}:${startOffset}`, count);
      }
    }
    return counts;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) {
  const functions = await listCalledFunctions();
  for (const key of functions) console.log(key);
  console.log(`${functions.length} functions in ${new Set(functions.map(toFile)).size} files`);
}
