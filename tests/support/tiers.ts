// Assigns test files to tiers. A file is fast unless it is listed here. `deno task ok` runs the fast tier, `--slow` runs
// the slow tier too, and `--long` and `--weekly` run the tests and series that `.ci/run` has no time for.
const root = new URL("../../", import.meta.url);

/** The tier of a step. */
export type Tier = "fast" | "slow" | "long" | "weekly";

/** Test files that take too long for the slow tier, each with the reason. */
export const LONG: Readonly<Record<string, string>> = {
  "tests/cli/installed_recipes_test.ts": "installs the packages of each recipe, and builds an app of Next",
  "tests/frameworks/next_build_test.ts": "installs Next, and builds an app",
  "tests/openapi/directory_test.ts": "installs a directory of published documents, and calls the operations of 300",
  "tests/openapi/documents_test.ts": "installs published documents, and calls 5,600 operations",
  "tests/openapi/prism_test.ts": "installs Prism, and calls 280 operations",
  "tests/peers/published_test.ts": "installs ten servers, and makes 60,000 calls",
  "tests/release/first_use_test.ts": "installs the package for each runtime, as new users do",
  "tests/release/npm_package_test.ts": "runs the packed package on every version of each runtime",
  "tests/release/npm_program_test.ts": "runs the installed program on every version of each runtime",
  "tests/release/twenty_things_test.ts": "follows a page on every version of each runtime",
  "tests/site/site_test.ts": "installs VitePress, builds the site, and opens it in a browser",
  "tests/stores/flood_test.ts":
    "starts a Redis server for each kind of request, and floods two instances while leases are renewed",
  "tests/stores/postgres_pooler_test.ts": "starts PgBouncer in front of PostgreSQL",
  "tests/stores/redis_sentinel_test.ts": "starts Redis with Sentinel, and waits for a failover",
};

/**
 * Folders whose slow tests start processes of both runtimes, whichever runtime runs the tests. In the slow tier, the tests
 * of these folders run on Deno only. `cli` is not listed, because most of its tests run commands in the test's own process.
 */
const PROCESSES = ["apps", "architecture", "examples", "frameworks", "peers", "release", "serve"];

/** Test files, and folders of test files, that take too long for the fast tier, each with the reason. */
export const SLOW: Readonly<Record<string, string>> = {
  "tests/apps/bridge_test.ts": "opens a browser",
  "tests/architecture/flaky_test.ts": "runs tests again and again, as the slow tier does",
  "tests/architecture/shape_test.ts": "type-checks a copy of the whole project",
  "tests/architecture/wall_test.ts": "type-checks two copies of the project",
  "tests/examples/authorization_server_test.ts": "starts a program on each runtime",
  "tests/examples/browser_test.ts": "opens a browser, and starts an authorization server and servers",
  "tests/examples/nginx_test.ts": "starts nginx in front of two processes",
  "tests/examples/production_test.ts": "serves the example in processes, and installs it",
  "tests/examples/sign_in_test.ts": "starts an authorization server, and clients on both runtimes",
  "tests/auth/revoked_test.ts": "starts an authorization server, and waits for rechecks of tokens",
  "tests/auth/fixture_test.ts": "starts an authorization server, and servers on both runtimes",
  "tests/auth/type_errors_test.ts": "starts the compiler",
  "tests/auth/oauth_proxy_browser_test.ts": "opens a browser",
  "tests/auth/oauth_proxy_instances_test.ts": "starts Redis, and instances that are killed",
  "tests/auth/oauth_proxy_oidc_test.ts": "starts authorization servers",
  "tests/client/oauth/oidc_test.ts": "starts authorization servers",
  "tests/code/kills_test.ts": "starts and kills twenty processes",
  "tests/code/spin_test.ts": "measures calls while eight programs spin",
  "tests/cli/": "starts hundreds of processes, and opens the inspector in a browser",
  "tests/examples/cluster_test.ts": "starts Redis, and three servers behind a proxy",
  "tests/extensions/type_errors_test.ts": "starts the compiler",
  "tests/frameworks/frameworks_test.ts": "starts a program for each framework",
  "tests/frameworks/probe_test.ts": "keeps a stream silent for 20 seconds",
  "tests/handlers/type_errors_test.ts": "starts the compiler",
  "tests/hostile/shares_test.ts": "fills every shared limit of three servers, in phases that wait for other clients",
  "tests/hostile/streams_quiet_test.ts": "waits until a runtime would cut an idle stream",
  "tests/observe/traces_test.ts": "makes 1,000 calls in a process on each runtime",
  "tests/peers/": "starts the processes of other servers and clients",
  "tests/release/": "packs, publishes and installs the package, and runs every program in the docs",
  "tests/search/hostile_test.ts": "asks a search ten thousand questions",
  "tests/serve/rejections_test.ts": "starts processes on each runtime",
  "tests/serve/serve_process_test.ts": "starts processes on each runtime",
  "tests/web/browser_test.ts": "opens a browser",
  "tests/transports/exit_test.ts": "waits for 5 seconds whether processes stay alive",
  "tests/stores/instances_test.ts": "starts several instances and processes for each store",
  "tests/stores/deno_kv_store_test.ts": "starts processes that write concurrently, and needs a flag",
  "tests/stores/log_bytes_test.ts": "waits between the writes of a stream",
  "tests/stores/planned_kills_test.ts": "starts Redis and two processes, and kills them 25 times",
  "tests/stores/postgres_clients_test.ts": "starts PostgreSQL servers, and kills them",
  "tests/stores/redis_clients_test.ts": "starts Redis servers, and kills them",
  "tests/stores/first_request_test.ts": "starts a Redis server and a PostgreSQL server",
  "tests/stores/redis_cluster_test.ts": "starts a Redis cluster",
  "tests/stores/sqlite_store_test.ts": "starts processes that write concurrently",
  "tests/stores/redis_store_test.ts": "starts a Redis server, and kills it",
  "tests/stores/process_store_test.ts": "starts a store process for each test",
  "tests/stores/shared_disable_test.ts": "waits for outages of several instances",
  "tests/stores/wrong_engines_test.ts": "waits for late notifications, and for engines that stay unavailable",
  "tests/stores/type_errors_test.ts": "starts the compiler",
  "tests/stores/user_types_test.ts": "starts the compiler",
};

/** Fast test files that wait for up to a minute. They begin first, so that the tests and checks beside them use the cores. */
export const WAITING: readonly string[] = [
  "tests/stores/session_store_test.ts",
  "tests/worker/worker_test.ts",
  "tests/eras/read_access_test.ts",
  "tests/auth/server_handle_test.ts",
  "tests/tasks/instances_test.ts",
  "tests/core/visibility_test.ts",
  "tests/auth/failures_test.ts",
  "tests/fuzz/corpus_test.ts",
];

/** Returns the tier of a test file. Throws if more than one entry of the slow tier lists the file. */
export function toTier(path: string): Exclude<Tier, "weekly"> {
  if (path in LONG) return "long";
  const entries = Object.keys(SLOW).filter((entry) => entry.endsWith("/") ? path.startsWith(entry) : path === entry);
  if (entries.length > 1) {
    throw new Error(`Cannot determine the tier of ${path}: ${entries.join(" and ")} list it; keep one entry`);
  }
  return entries.length ? "slow" : "fast";
}

/** Occurs in the text of files that register behaviours, which run in fewer combinations in the fast tier. */
export const BEHAVIOURS = /\b(?:behaviour|listWaysIn)\(/;

export async function hasWays(path: string): Promise<boolean> {
  return BEHAVIOURS.test(await Deno.readTextFile(new URL(path, root)));
}

/** Tests whether a file of the slow tier is in one of the folders whose tests start processes of both runtimes. */
export function startsProcesses(path: string): boolean {
  return PROCESSES.some((folder) => path.startsWith(`tests/${folder}/`));
}

/** Tests whether a file starts processes on each runtime, which it does on only one runtime in the slow tier. */
export async function hasRuntimes(path: string): Promise<boolean> {
  return /\/runtimes\.ts"/.test(await Deno.readTextFile(new URL(path, root)));
}

/** Returns the sorted paths of all test files, relative to the project. Deno only. */
export async function listTests(folder = "tests/"): Promise<string[]> {
  const paths: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, root))) {
    if (isDirectory) paths.push(...await listTests(`${folder}${name}/`));
    else if (name.endsWith("_test.ts")) paths.push(folder + name);
  }
  return paths.sort();
}
