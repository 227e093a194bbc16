// Kills the instances of a server under load, one after another, and restarts them. No acknowledged change may be lost,
// no effect may be doubled, and every request must end.
//
// With --rolling, each instance is shut down instead, as in a rolling restart, and no request may fail. With --pause, each
// instance is suspended for up to 9 seconds instead, and continues with what it did before.
//
//   deno task load:kills [--engine redis|postgres|sqlite|denokv] [--runtime deno|bun|mixed] [--kills N] [--rolling]
//                        [--pause] [--skew MS] [--proxy REVISION]
//
// With --skew, the clocks of the instances differ by MS milliseconds. Redis and PostgreSQL have their own clock. With
// --proxy, two instances are proxies of another server, which serves only the revision, and which is killed too.
import { readOptions } from "../../support/options.ts";
import { type Crowd, startCrowd } from "./clients.ts";
import { type Engine, ENGINES, MISSING, RUNTIMES, startCluster } from "./instances.ts";

type Mode = "kills" | "restarts" | "pauses";

/**
 * Maximum duration of a pause in milliseconds. Leases expire in less time, so that other instances take over. After a
 * pause of more than 10 seconds, a call with a question can end 10 seconds after the pause.
 */
const MAX_PAUSE_MS = 9000;

interface Run {
  readonly engine: Engine;
  readonly runtime: string;
  readonly kills: number;
  readonly mode: Mode;
  readonly skewMs: number;
  /** Revision of the server behind the instances, if they are proxies. */
  readonly proxy?: string;
}

function toRuns(args: readonly string[]): readonly Run[] {
  const values = readOptions(args, {
    values: ["--engine", "--runtime", "--kills", "--skew", "--proxy"],
    flags: ["--rolling", "--pause"],
  });
  const proxy = values.get("--proxy");
  const engine = proxy ? "redis" : values.get("--engine");
  const engines = ENGINES.filter((each) => (engine ?? each) === each);
  const kills = Number(values.get("--kills") ?? 5);
  const runtime = values.get("--runtime");
  if (!engines.length || !(kills > 0) || runtime !== undefined && !RUNTIMES[runtime]) {
    throw new Error("Cannot start: write --engine redis|postgres|sqlite|denokv --runtime deno|bun|mixed --kills N");
  }
  const mode: Mode = values.has("--rolling") ? "restarts" : values.has("--pause") ? "pauses" : "kills";
  return engines.map((engine) => ({
    engine,
    runtime: engine === "denokv" ? "deno" : runtime ?? "mixed",
    kills,
    mode,
    skewMs: Number(values.get("--skew") ?? 0),
    proxy,
  }));
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function runKills({ engine, runtime, kills, mode, skewMs, proxy }: Run): Promise<Crowd["seen"]> {
  const effects = await Deno.makeTempFile({ prefix: "mcp-effects-" });
  const runtimes = RUNTIMES[runtime];
  const env: Record<string, string> = { EFFECTS: effects, ...proxy && { MCP_REVISIONS: proxy } };
  await using behind = proxy ? await startCluster({ engine: "sqlite", runtimes, count: 1, env }) : undefined;
  const [upstream] = behind?.instances ?? [];
  const proxies = upstream && { file: "proxy_server.ts", count: 2 };
  if (upstream) env.MCP_UPSTREAM = `${upstream.origin}/mcp`;
  await using cluster = await startCluster({ engine, runtimes, skewMs, env, ...proxies });
  const instances = [...cluster.instances, ...behind?.instances ?? []];
  const crowd = await startCrowd(cluster.send, effects);
  await crowd.checkSubscribers();
  for (let kill = 0; kill < kills; kill++) {
    const victim = instances[Math.floor(Math.random() * instances.length)];
    await pause(200 + Math.random() * 600);
    if (mode === "pauses") await victim.pause(Math.random() * MAX_PAUSE_MS);
    else await victim.end(mode === "restarts" ? "SIGTERM" : "SIGKILL");
    crowd.noteKill();
    if (victim === upstream && mode !== "pauses") {
      await victim.start();
      crowd.noteKill();
    }
    await crowd.checkSubscribers();
    if (victim !== upstream && mode !== "pauses") await victim.start();
  }
  await crowd.checkSubscribers();
  await crowd.stop();
  if (mode === "restarts") {
    for (const [text, times] of crowd.seen.errors) {
      crowd.seen.faults.push(`${times} × ${text}`);
    }
  }
  await Deno.remove(effects);
  for (const { errors, runtime } of instances) {
    if (/Unhandled|Uncaught|panicked/.test(errors())) crowd.seen.faults.push(`an instance on ${runtime}: ${errors()}`);
  }
  return crowd.seen;
}

let [passed, failed] = [0, 0];
for (const run of toRuns(Deno.args)) {
  const missing = MISSING[run.engine];
  if (missing) {
    console.log(`Skipped on ${run.engine}: ${missing}`);
    if (Deno.env.get("REQUIRE_ALL")) failed++;
    continue;
  }
  const began = performance.now();
  const seen = await runKills(run);
  const seconds = Math.round((performance.now() - began) / 1000);
  console.log(
    `\n${run.kills} ${run.mode} on ${run.engine}, ${run.runtime}: ${seconds} s, longest request ${
      Math.round(seen.longestMs)
    } ms, ${seen.handshakes} handshakes`,
  );
  console.table(seen.counts);
  for (const [text, times] of [...seen.errors].sort(([, a], [, b]) => b - a)) console.log(`${times} × ${text}`);
  for (const fault of seen.faults) console.log(`FAULT ${fault}`);
  if (seen.faults.length) failed++;
  else passed++;
}
console.log(`${passed} passed, ${failed} failed`);
Deno.exit(failed ? 1 : 0);
