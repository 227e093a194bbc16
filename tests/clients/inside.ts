// The part of the run that starts clients. run.ts starts it in a network namespace.
import { agents } from "./agents/agents.ts";
import type { Agent } from "./agents/agent.ts";
import { type Behaviours, toAgentBehaviours } from "./behaviours.ts";
import { type Check, toChecks } from "./checks.ts";
import { toEvidence } from "./evidence.ts";
import { requireIsolation } from "./namespace.ts";
import { toPackage } from "./packages.ts";
import { type ClientRecord, readRecords, toDifferences, writeRecords } from "./record.ts";
import { script } from "./script.ts";
import { type Connection, converse, type Observation } from "./session.ts";
import type { Tools } from "./tools.ts";

/** What run.ts passes on. */
interface Request {
  readonly tools: Tools;
  readonly names: readonly string[];
  readonly isWriting: boolean;
}

/** Number of clients that run at the same time. */
const LANES = 2;

/** The connections of every agent. */
const CONNECTIONS: readonly Connection[] = [
  { probe: "deno", transport: "http" },
  { probe: "deno", transport: "stdio" },
  { probe: "official", transport: "http" },
];
/** The agent that also connects to the probe on the other runtimes. */
const ON_ALL_RUNTIMES = "claude-code";
const OTHER_CONNECTIONS: readonly Connection[] = [
  ...(["bun", "node"] as const).flatMap((probe) =>
    (["http", "stdio"] as const).map((transport) => ({ probe, transport }))
  ),
];

requireIsolation();
const { tools, names, isWriting }: Request = JSON.parse(Deno.args[0]);
const records = { ...await readRecords() };
const counts = { passed: 0, failed: 0, skipped: 0 };

/** Prints and counts the outcome of checks. */
function report(title: string, checks: readonly Check[], details: string): void {
  const failures = checks.filter(({ failure }) => failure !== undefined);
  counts.passed += checks.length - failures.length;
  counts.failed += failures.length;
  console.log(`${failures.length ? "FAILED" : "ok"} ${title} (${checks.length - failures.length} of ${checks.length})`);
  for (const { name, failure } of failures) console.log(`  ${name}: ${failure}`);
  if (failures.length && details) console.log(`  ${details.trim().slice(-1500).replaceAll("\n", "\n  ")}`);
}

/** Compares behaviours with the record. */
function toRecordCheck(seen: Behaviours, expected: Behaviours): readonly Check[] {
  if (isWriting) return [];
  const names = [...new Set([...Object.keys(seen), ...Object.keys(expected)])];
  const changes = names.filter((name) => seen[name] !== expected[name]);
  const failure = changes.map((name) => `${name} is "${seen[name]}", and was "${expected[name]}"`).join("; ");
  return [{ name: "the client behaves as recorded", ...changes.length && { failure } }];
}

async function runAgent(agent: Agent): Promise<void> {
  const old = records[agent.name];
  let [http, stdio, official]: Behaviours[] = [{}, {}, {}];
  for (const connection of [...CONNECTIONS, ...agent.name === ON_ALL_RUNTIMES ? OTHER_CONNECTIONS : []]) {
    const title = `${agent.title}, ${connection.probe}, ${connection.transport}`;
    try {
      const observation = await converse(agent, { connection, script, tools });
      const evidence = toEvidence(observation.recording, observation.wire);
      const behaviours = toAgentBehaviours(evidence);
      const { probe, transport } = connection;
      const isBase = probe === "deno" && transport === "http";
      if (isBase) http = behaviours;
      const differences = toDifferences(behaviours, http);
      if (probe === "deno" && transport === "stdio") stdio = toTransportDifferences(differences);
      if (probe === "official") official = toOfficialDifferences(differences);
      const seen = isBase ? http : probe === "official" ? official : toTransportDifferences(differences);
      const expected = isBase
        ? old?.behaviours
        : probe === "official"
        ? old?.official
        : transport === "stdio"
        ? old?.stdio
        : {};
      const checks = toChecks({
        ...{ connection, evidence, entries: observation.entries },
        unfinished: toUnfinished(observation),
      });
      report(title, [...checks, ...toRecordCheck(seen, expected ?? {})], observation.ended.output);
    } catch (error) {
      report(title, [{ name: "the client starts", failure: String(error) }], "");
    }
  }
  records[agent.name] = {
    ...{ kind: "agent", title: agent.title, ...toPackage(agent.name), date: new Date().toISOString().slice(0, 10) },
    ...{ behaviours: http, stdio, official },
  } satisfies ClientRecord;
}

/** Returns the reason why a client did not end by itself. */
function toUnfinished(
  { recording: { isDone, turns, unknown }, ended: { code, isLate } }: Observation,
): string | undefined {
  if (isDone && !isLate) return;
  return `${isLate ? "killed" : `exit code ${code}`} after ${turns.length} requests to the model` +
    (unknown.length ? `, and requests for ${[...new Set(unknown)].join(", ")}` : "");
}

/** Leaves out what exists over HTTP only. */
function toTransportDifferences({ endsSession: _, versionHeader: __, ...rest }: Behaviours): Behaviours {
  return rest;
}

/** Leaves out what only the probe of this library has. */
function toOfficialDifferences(differences: Behaviours): Behaviours {
  const same = [
    "number",
    "error",
    "structured",
    "structuredOnly",
    "image",
    "objectWithImage",
    "link",
    "textBesideLink",
  ];
  return Object.fromEntries(
    [...same, "embedded", "form", "url"].flatMap((name) => name in differences ? [[name, differences[name]]] : []),
  );
}

const begin = performance.now();
for (const [name, reason] of Object.entries(tools.missing)) {
  console.log(`skipped ${name} (${reason})`);
  if (Deno.env.get("REQUIRE_ALL")) counts.failed++;
  else counts.skipped++;
}
const waiting = agents.filter(({ name }) => names.includes(name) && tools.packages[name]);
await Promise.all(Array.from({ length: LANES }, async () => {
  for (let agent = waiting.shift(); agent; agent = waiting.shift()) await runAgent(agent);
}));
if (isWriting) await writeRecords(records);
console.log(`\n${names.length} clients in ${((performance.now() - begin) / 1000).toFixed(0)} s`);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
Deno.exit(counts.failed ? 1 : 0);
