// Runs the behaviour suite over HTTP on three instances that share a store. Each request goes to a random instance.
//
// deno task test:instances [--store redis|postgres|sqlite] [--runtime deno|bun] [file...]
//
// With SEED=N, the run makes the same random choices as an earlier run.
import { missingPostgres, startPostgres } from "../support/postgres/server.ts";
import { missingRedis, startRedis } from "../support/redis/server.ts";
import { hasWays, listTests } from "../support/tiers.ts";

const root = new URL("../../", import.meta.url).pathname;

interface Choice {
  readonly store: string;
  readonly runtime: string;
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
}

function readOption(args: string[], name: string, known: readonly string[]): readonly string[] {
  const at = args.indexOf(`--${name}`);
  if (at < 0) return known;
  const [, value] = args.splice(at, 2);
  if (!known.includes(value)) {
    throw new Error(`Cannot run the tests: --${name} is ${value}; write ${known.join(" or ")}`);
  }
  return [value];
}

async function runTests({ store, runtime }: Choice, place: string, files: readonly string[]): Promise<Counts> {
  const command = runtime === "deno"
    ? ["deno", "test", "-A", "--no-check", "--parallel", "--filter", "over http", "--reporter=dot", ...files]
    : [
      "bun",
      "test",
      "--parallel=4",
      "--dots",
      "--only-failures",
      "-t",
      "over http",
      ...files.map((path) => `./${path}`),
    ];
  const { code, stdout, stderr } = await new Deno.Command(command[0], {
    args: command.slice(1),
    cwd: root,
    env: { NO_COLOR: "1", DENO_JOBS: "4", INSTANCES: `${store}:${place}`, SEED: seed },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  const read = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  const counts = runtime === "deno"
    ? { passed: read(/(\d+) passed/), failed: read(/(\d+) failed/) }
    : { passed: read(/^ *(\d+) pass$/m), failed: read(/^ *(\d+) fail$/m) };
  if (code || !counts.passed) console.log(text);
  return { ...counts, failed: counts.failed || (code || !counts.passed ? 1 : 0) };
}

const seed = Deno.env.get("SEED") ?? `${Math.floor(Math.random() * 2 ** 32)}`;
const args = [...Deno.args];
const stores = readOption(args, "store", ["redis", "postgres", "sqlite"]);
const runtimes = readOption(args, "runtime", ["deno", "bun"]);
const found: string[] = [];
for (const path of args.length ? args : await listTests()) if (args.length || await hasWays(path)) found.push(path);

console.log(`SEED=${seed}`);
let [passed, failed, skipped] = [0, 0, 0];
for (const store of stores) {
  const missing = store === "redis" ? missingRedis : store === "postgres" ? missingPostgres : undefined;
  if (missing) {
    console.log(`Skipped on ${store}: ${missing}`);
    if (Deno.env.get("REQUIRE_ALL")) failed++;
    else skipped++;
    continue;
  }
  const folder = await Deno.makeTempDir();
  await using redis = store === "redis" ? startRedis() : undefined;
  await using postgres = store === "postgres" ? startPostgres() : undefined;
  for (const runtime of runtimes) {
    const place = redis?.socket ?? postgres?.folder ?? folder;
    const counts = await runTests({ store, runtime }, place, found);
    console.log(`${store} on ${runtime}: ${counts.passed} passed, ${counts.failed} failed`);
    passed += counts.passed;
    failed += counts.failed;
  }
  await Deno.remove(folder, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
Deno.exit(failed ? 1 : 0);
