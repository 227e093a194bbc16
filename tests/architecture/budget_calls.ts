// Counts the functions that one tool call runs: those of the library that V8 recorded at least once per call, as the
// difference between a run of few calls and a run of many. `deno run -A tests/architecture/budget_calls.ts` lists them.

/** The path of a call: the era of its client and the transport. */
export const PATHS = ["modern http", "modern stdio", "legacy http", "legacy stdio"] as const;
/** One of {@linkcode PATHS}. */
export type CallPath = typeof PATHS[number];

/** A copy of the library, by its public entry points. */
export interface Subject {
  /** The folder of the copy; ends with a slash. */
  readonly folder: string;
  /** The file of the main export. */
  readonly library: string;
  /** The file of the `./stdio` export. */
  readonly stdio: string;
}

const root = new URL("../../", import.meta.url).pathname;
const OWN: Subject = { folder: root, library: `${root}mod.ts`, stdio: `${root}src/transports/stdio/stdio.ts` };

/** The kinds of tool: one that returns at once, and one that is asynchronous and reports progress once. */
export type CallKind = "plain" | "progress";

/** The functions of the library that every call runs, as `src/core/scheduler.ts run:1024` (name and offset). */
export async function listCalledFunctions(
  path: CallPath,
  { kind = "progress", subject = OWN }: { readonly kind?: CallKind; readonly subject?: Subject } = {},
): Promise<string[]> {
  const many = 1000;
  const before = await countExecutions([path, kind, "10"], subject); // the first calls also compile and fill caches
  const after = await countExecutions([path, kind, `${10 + many}`], subject);
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

/** The number of calls of each function while a process made tool calls. */
async function countExecutions(words: readonly string[], subject: Subject): Promise<Map<string, number>> {
  const start = new URL(`file://${subject.folder}`).href;
  const folder = await Deno.makeTempDir();
  try {
    const program = ["tests/architecture/budget_workload.ts", ...words, subject.library, subject.stdio];
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", `--coverage=${folder}`, ...program],
      cwd: root,
      env: { NO_COLOR: "1" },
    }).output();
    if (!success) throw new Error(`Cannot count: the calls failed\n${new TextDecoder().decode(stderr)}`);
    const counts = new Map<string, number>();
    for await (const { name } of Deno.readDir(folder)) {
      if (!name.endsWith(".json")) continue;
      const { url, functions }: Coverage = JSON.parse(await Deno.readTextFile(`${folder}/${name}`));
      const path = url.startsWith(start) ? url.slice(start.length) : "";
      if (!path.startsWith("src/") && path !== "mod.ts") continue;
      for (const { functionName, ranges: [{ startOffset, count }] } of functions) {
        // The initializers of fields are part of their constructor. Coverage lists them only sometimes.
        if (functionName.startsWith("<")) continue;
        counts.set(`${path} ${functionName || "(anonymous)"}:${startOffset}`, count);
      }
    }
    return counts;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) {
  for (const path of PATHS) {
    const functions = await listCalledFunctions(path);
    for (const key of functions) console.log(key);
    console.log(`${path}: ${functions.length} functions in ${new Set(functions.map(toFile)).size} files\n`);
  }
}
