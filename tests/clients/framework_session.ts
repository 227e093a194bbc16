// Runs the program of a framework, which calls the probe, and reads what the framework returns.
import { type Attempt, createPlace, toUnfinished, writeLogs } from "./agent_session.ts";
import type { Evidence } from "./behaviours.ts";
import { toEvidence } from "./evidence.ts";
import type { Framework } from "./frameworks/frameworks.ts";
import { startModel } from "./model/model.ts";
import { type OfferedTool, type Seen, toSeen } from "./model/turn.ts";
import type { Observation } from "./observation.ts";
import { type Ended, runProgram, toEnvironment } from "./programs.ts";
import { script } from "./script.ts";
import { type Connection, openServer, toName, toStdioCommand } from "./teed_server.ts";
import { toFacts, type WireFacts } from "./wire.ts";

const SECONDS = 120;
const PROGRAMS = new URL("frameworks/", import.meta.url);

/** Runs the program of a framework. */
export async function runFramework(
  framework: Framework,
  connection: Connection,
  { tools, attempt }: Attempt,
): Promise<Observation> {
  const { name, needsModel = false } = framework;
  const { probe } = connection;
  const folder = `${tools.work}/${name}-${toName(connection)}-${attempt}`;
  const { home, project } = await createPlace(framework, { tools, folder });
  // A program finds the packages beside itself.
  await Deno.symlink(`${tools.packages[name]}/node_modules`, `${project}/node_modules`);
  for (const file of [`${name}.mjs`, "play.mjs"]) await Deno.copyFile(new URL(file, PROGRAMS), `${project}/${file}`);
  await using model = await startModel(script);
  await using server = await openServer(connection, { tools, folder });
  const [command, ...args] = server.runtime === undefined ? [] : toStdioCommand(probe, server.runtime, tools);
  const env = {
    ...toEnvironment({ home, path: [tools.node.replace(/\/[^/]*$/, "")] }),
    ...{ PROBE_SERVER: JSON.stringify(server.url === undefined ? { command, args } : { url: server.url }) },
    ...{ PROBE_SCRIPT: JSON.stringify(script), OPENAI_API_KEY: "dummy", OPENAI_AGENTS_DISABLE_TRACING: "1" },
    ...{ ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "dummy", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
  };
  const ended = await runProgram([tools.node, `${project}/${name}.mjs`], { cwd: project, env, seconds: SECONDS });
  const entries = await server.entries();
  const facts = toFacts(entries);
  await writeLogs(folder, ended, model.recording);
  if (needsModel) {
    const evidence = toEvidence(model.recording, facts);
    return { evidence, entries, output: ended.output, unfinished: toUnfinished(model.recording, ended) };
  }
  return toObservation(ended, facts, entries);
}

/** A line that a program prints. */
interface Line {
  readonly tools?: readonly string[];
  readonly instructions?: string;
  readonly step?: string;
  readonly value?: unknown;
  readonly error?: string;
  readonly isDone?: boolean;
}

function toObservation(ended: Ended, wire: WireFacts, entries: Observation["entries"]): Observation {
  const lines = ended.output.split("\n").flatMap(toLine);
  const seen = new Map<string, Seen>(
    lines.flatMap(({ step, value, error }) =>
      step === undefined
        ? []
        : [[step, error === undefined ? toResultSeen(value) : { text: error, images: 0, files: 0, isError: true }]]
    ),
  );
  const evidence: Evidence = {
    ...{ wire, seen, called: new Map(), isDeferred: false },
    tools: lines.flatMap(({ tools = [] }) => tools).map((name): OfferedTool => ({ name, description: "", input: {} })),
    text: lines.map(({ instructions }) => instructions ?? "").join(""),
  };
  const isDone = lines.some(({ isDone }) => isDone) && !ended.isLate;
  return {
    ...{ evidence, entries, output: ended.output },
    ...!isDone && { unfinished: ended.isLate ? "killed" : `exit code ${ended.code}` },
  };
}

function toLine(text: string): readonly Line[] {
  try {
    return text.startsWith("{") ? [JSON.parse(text)] : [];
  } catch {
    return [];
  }
}

function toResultSeen(value: unknown): Seen {
  const { isError, status } = Object(Object(value).toolResult ?? value);
  return toSeen(value, { isError: isError === true || status === "error" });
}
