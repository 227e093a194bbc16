// The part of the run that starts clients. run.ts starts it in a network namespace.
import { runInLanes } from "../support/lanes.ts";
import { agents } from "./agents/agents.ts";
import { converse } from "./agent_session.ts";
import { type Behaviours, type Evidence, toAgentBehaviours, toResultBehaviours } from "./behaviours.ts";
import { type Check, toChecks } from "./checks.ts";
import { runFramework } from "./framework_session.ts";
import { frameworks } from "./frameworks/frameworks.ts";
import { requireIsolation } from "./namespace.ts";
import { checkGateway, GATEWAY } from "./gateway.ts";
import type { Observation } from "./observation.ts";
import { toPackage } from "./packages.ts";
import { type ClientRecord, readRecords, toDifferences, writeRecords } from "./record.ts";
import { type SignIn, signIn, type SignInPlace } from "./sign_in.ts";
import { toGatewayChecks } from "./gateway_checks.ts";
import { type Connection, toName } from "./teed_server.ts";
import type { Tools } from "./tools.ts";
import type { WireFacts } from "./wire.ts";

/** What run.ts passes on. */
interface Request {
  readonly tools: Tools;
  readonly names: readonly string[];
  readonly isWriting: boolean;
}

const MAX_ATTEMPTS = 3;

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
/**
 * The agents that also connect to `mcp gateway`: an agent without sessions, an agent with sessions that supports
 * questions, and an agent with sessions that does not support questions.
 */
const BEHIND_GATEWAY = ["claude-code", "codex", "gemini"];
const GATEWAY_CONNECTIONS: readonly Connection[] = [
  { probe: "deno", transport: "http", gateway: [] },
  { probe: "deno", transport: "stdio", gateway: [] },
  { probe: "deno", transport: "stdio", gateway: ["lock"] },
  { probe: "deno", transport: "http", gateway: ["search", "lock"] },
];

requireIsolation();
const { tools, names, isWriting }: Request = JSON.parse(Deno.args[0]);
const records = { ...await readRecords() };
const counts = { passed: 0, failed: 0, skipped: 0 };

/** Prints and counts the outcome of checks. Returns whether all of them passed. */
function report(title: string, checks: readonly Check[], details: string): boolean {
  const failures = checks.filter(({ failure }) => failure !== undefined);
  counts.passed += checks.length - failures.length;
  counts.failed += failures.length;
  console.log(`${failures.length ? "FAILED" : "ok"} ${title} (${checks.length - failures.length} of ${checks.length})`);
  for (const { name, failure } of failures) console.log(`  ${name}: ${failure}`);
  if (failures.length && details) console.log(`  ${details.trim().slice(-1500).replaceAll("\n", "\n  ")}`);
  return !failures.length;
}

/** Compares behaviours with the record. */
function toRecordCheck(seen: Behaviours, expected: Behaviours): readonly Check[] {
  if (isWriting) return [];
  const names = [...new Set([...Object.keys(seen), ...Object.keys(expected)])];
  const changes = names.filter((name) => seen[name] !== expected[name]);
  const failure = changes.map((name) => `${name} is "${seen[name]}", and was "${expected[name]}"`).join("; ");
  return [{ name: "the client behaves as recorded", ...changes.length && { failure } }];
}

/** A client of any kind. */
interface Client {
  readonly name: string;
  readonly title: string;
  readonly kind: ClientRecord["kind"];
  readonly observe: (connection: Connection, attempt: number) => Promise<Observation>;
  readonly toBehaviours: (evidence: Evidence) => Behaviours;
  /** Signs in to a server that requires access tokens, if the client was seen to do this. */
  readonly signIn?: (at: SignInPlace) => Promise<SignIn>;
}

/**
 * Runs a client again that has called no tool: under load, some clients send the first prompt before a server has
 * started.
 */
async function observeAgain({ observe }: Client, connection: Connection): Promise<Observation> {
  for (let attempt = 1;; attempt++) {
    const observation = await observe(connection, attempt);
    if (observation.evidence.seen.size || attempt === MAX_ATTEMPTS) return observation;
  }
}

async function runClient(client: Client): Promise<void> {
  const { name, title, kind, toBehaviours, signIn } = client;
  const old = records[name];
  let [http, stdio, official]: Behaviours[] = [{}, {}, {}];
  let isRight = true;
  for (const connection of [...CONNECTIONS, ...name === ON_ALL_RUNTIMES ? OTHER_CONNECTIONS : []]) {
    const { probe, transport } = connection;
    const row = `${title}, ${probe}, ${transport}`;
    try {
      const observation = await observeAgain(client, connection);
      const behaviours = toBehaviours(observation.evidence);
      const isBase = probe === "deno" && transport === "http";
      if (isBase) http = behaviours;
      const differences = toDifferences(behaviours, http);
      const seen = isBase
        ? http
        : probe === "official"
        ? toOfficialDifferences(differences)
        : toTransportDifferences(differences, observation.evidence.wire);
      if (probe === "official") official = seen;
      if (probe === "deno" && transport === "stdio") stdio = seen;
      const expected = isBase
        ? withoutSignIn(old?.behaviours ?? {})
        : probe === "official"
        ? old?.official
        : transport === "stdio"
        ? old?.stdio
        : {};
      const checks = [...toChecks({ connection, ...observation }), ...toRecordCheck(seen, expected ?? {})];
      isRight = report(row, checks, observation.output) && isRight;
    } catch (error) {
      isRight = report(row, [{ name: "the client starts", failure: String(error) }], "");
    }
  }
  let gateway: Behaviours | undefined;
  if (BEHIND_GATEWAY.includes(name)) {
    for (const connection of GATEWAY_CONNECTIONS) {
      const row = `${title}, ${toName(connection)}`;
      try {
        const observation = await observeAgain(client, connection);
        const { evidence, output } = observation;
        const checks = [...toGatewayChecks(connection.gateway ?? [], observation)];
        if (!connection.gateway?.length) {
          const isBase = gateway === undefined;
          const direct = connection.transport === "http" ? http : { ...http, ...stdio };
          const seen = toTransportDifferences(toDifferences(toBehaviours(evidence), direct), evidence.wire);
          gateway ??= seen;
          checks.push(...toRecordCheck(seen, (isBase ? old?.gateway : gateway) ?? {}));
        }
        isRight = report(row, checks, output) && isRight;
      } catch (error) {
        isRight = report(row, [{ name: "the client starts", failure: String(error) }], "");
      }
    }
  }
  if (signIn) {
    for (const at of ["issuer", "github"] as const) {
      const { checks, output } = await signIn(at).catch((error) => ({
        checks: [{ name: "the client signs in", failure: String(error) }],
        output: "",
      }));
      isRight = report(`${title}, sign-in, ${at}`, checks, output) && isRight;
    }
  }
  // A client that a check failed for has behaviours that nobody should read on the page.
  if (!isRight) return;
  const date = new Date().toISOString().slice(0, 10);
  const behaviours = { ...http, signIn: signIn ? "yes" : "not tried" };
  records[name] = { kind, title, ...toPackage(name), date, behaviours, stdio, official, ...gateway && { gateway } };
}

/**
 * Leaves out what exists over HTTP only, and the revision of a client that waited only some milliseconds for a server
 * that had just been started.
 */
function toTransportDifferences(differences: Behaviours, { fellBack }: WireFacts): Behaviours {
  const { endsSession: _, versionHeader: __, revision, ...rest } = differences;
  return { ...revision !== undefined && !fellBack && { revision }, ...rest };
}

/** Leaves out what a check shows. */
function withoutSignIn({ signIn: _, ...rest }: Behaviours): Behaviours {
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
const clients: readonly Client[] = [
  ...agents.map((agent): Client => ({
    ...{ kind: "agent", name: agent.name, title: agent.title, toBehaviours: toAgentBehaviours },
    observe: (connection, attempt) => converse(agent, connection, { tools, attempt }),
    ...agent.toSignIn && { signIn: (at: SignInPlace) => signIn(agent, at, tools) },
  })),
  ...frameworks.map((framework): Client => ({
    ...{ kind: "framework", name: framework.name, title: framework.title, toBehaviours: toResultBehaviours },
    observe: (connection, attempt) => runFramework(framework, connection, { tools, attempt }),
  })),
];
await runInLanes(clients.filter(({ name }) => names.includes(name) && tools.packages[name]), runClient);
if (names.includes(GATEWAY) && tools.packages[GATEWAY]) report("supergateway, SSE", await checkGateway(tools), "");
if (isWriting) await writeRecords(records);
console.log(`\n${names.length} clients in ${((performance.now() - begin) / 1000).toFixed(0)} s`);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
Deno.exit(counts.failed ? 1 : 0);
