/**
 * `mcp doctor`: tests a server over HTTP with the requests that clients send, or the store or the sign-in of a server file. The
 * command reports problems and how to fix each problem.
 */
import { toPrintableJson } from "../core/kit/printable.ts";
import { listSignIns, listStores } from "../host.ts";
import { type Args, rejectRest, rejectSecond } from "./args.ts";
import type { Command } from "./command.ts";
import { FOR, listQuestions, type Question, readDirectories, toQuestionList } from "./directories.ts";
import type { Finding } from "./doctor/report.ts";
import { connect } from "../client/client.ts";
import { reportLine } from "./client/terminal_output.ts";
import { toLine } from "./client/terminal_text.ts";
import { createAuth, SIGN_IN_DESCRIPTION, SIGN_IN_OPTIONS } from "./sign_in/sign_in_options.ts";
import { readHeaders } from "./header_flags.ts";
import type { Server } from "../library.ts";
import { load } from "./load.ts";
import { platform } from "./platform.ts";
import { toCount } from "./listing.ts";
import { CliError, UsageError } from "./cli_error.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "Find problems in a server over HTTP or in a store, and suggest fixes",
  usage: ["doctor [OPTIONS] URL", "doctor --store|--sign-in [--json] FILE"],
  description: [
    "The command tests the address, protocol revisions, sessions, streams, access from web pages, tokens, and the " +
    "server's lists. It calls no tools. It changes nothing on the server, except for its own sessions.",
    "A problem means that the server violates the protocol, admits clients that it should reject, or rejects clients " +
    "that it should admit. A note is a recommendation.",
    SIGN_IN_DESCRIPTION,
    "With --store, the command imports FILE, which exports a server, and tests the server's store with keys that begin with " +
    "doctor-. The command removes these keys at the end. Keys that remain expire within a minute.",
    "With --sign-in, the command imports FILE, whose server uses oauthProxy(), and tests its options and whether the " +
    "provider accepts its client.",
  ],
  options: {
    header: {
      value: "NAME=VALUE",
      isRepeatable: true,
      text: 'HTTP header to send with every request, such as authorization="Bearer …"; may be repeated',
    },
    origin: {
      value: "ORIGIN",
      text: "Origin of a web page that the server should admit, such as http://localhost:6274",
    },
    heartbeat: {
      value: "SECONDS",
      text: "Time to wait for a heartbeat on an idle stream, up to 600 (default: do not wait)",
    },
    timeout: { value: "SECONDS", text: "Time that the server may take to respond, up to 600 (default: 5)" },
    ...SIGN_IN_OPTIONS,
    for: FOR,
    store: { text: "Examine the store of a server file" },
    "sign-in": { text: "Examine the sign-in of a server file that uses oauthProxy()" },
    json: { text: "Print one JSON document" },
  },
  operands: "files",
  examples: [
    "doctor http://127.0.0.1:3000/mcp",
    "doctor https://mcp.example.com/mcp --for claude,chatgpt",
    'doctor https://mcp.example.com/mcp --header authorization="Bearer …" --heartbeat 30',
    "doctor http://127.0.0.1:3000/mcp --origin http://localhost:6274 --json",
    "doctor server.ts --store",
    "doctor server.ts --sign-in",
  ],
  exitCodes: {
    1: "The command found problems",
    130: "The user pressed Ctrl-C; the command has printed the results up to then",
  },
  run: diagnose,
};

async function diagnose(args: Args): Promise<number> {
  const { operands: [url], flags, all, rest } = args;
  const [part, second] = Object.keys(PARTS).filter((name) => name in flags);
  if (second) {
    throw new UsageError(`Cannot use --${part} with --${second}: doctor examines one part; remove one of them`);
  }
  if (part) return await diagnoseFile(args, part);
  if (rest) {
    throw new UsageError("Cannot examine a command: it does not serve HTTP; use the inspect command, or name a URL");
  }
  if (url === undefined || !/^https?:/i.test(url) || !URL.canParse(url)) throw refuseUrl(url);
  rejectSecond(args.operands, { verb: "examine", limit: "doctor examines one server" });
  const { origin } = flags;
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).origin === origin)) {
    throw new UsageError(
      `Cannot use the origin ${origin}: it does not consist of a scheme and a host; write an origin such as ` +
        "http://localhost:6274",
    );
  }
  const directories = readDirectories(all.for);
  const headers = readHeaders(all.header);
  const [timeoutMs, heartbeatMs] = [readMs("timeout", flags.timeout), readMs("heartbeat", flags.heartbeat)];
  const { examine } = await import("./doctor/examination.ts");
  const { stop, signal } = stopOnSignal();
  const token = await findToken(args, url, headers, signal);
  const findings = await examine({
    url: new URL(url).href,
    headers: token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` },
    origin,
    timeoutMs,
    heartbeatMs,
    signal,
    lookUp: platform.lookUp,
    directories,
  });
  const questions = directories.length ? { questions: listQuestions(directories) } : {};
  console.log(
    "json" in flags ? toJson({ url, ...questions }, findings) : toReport(findings) + toQuestionList(directories),
  );
  return toExitCode(findings, stop);
}

/** Signs in if necessary. Without a token, `doctor` examines only the parts that do not require a token. */
async function findToken(
  args: Args,
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const auth = createAuth(args, headers);
  if (!auth) return;
  try {
    if (!await isProtected(url, headers, signal)) return;
    await (await connect(url, { auth, headers, signal, onWarning: () => {} })).close();
    const token = await auth.token({ url, method: "POST" });
    if (typeof token !== "object") return token;
    reportLine(
      "Your token is bound to a key, which doctor cannot use, so it examines only the parts that require no token.",
    );
  } catch (error) {
    // Print only errors about the sign-in, because the examination reports all other problems of the server.
    const isAboutSignIn = error instanceof CliError || error instanceof Error && error.name === "SignInError";
    if (isAboutSignIn) reportLine(toLine(error.message, 2000));
  }
}

/** Milliseconds for the request that finds out whether the server requires a token. */
const PROBE_MS = 5000;

async function isProtected(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> {
  const init = { method: "POST", body: "{}", redirect: "manual" } as const;
  const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
  const late = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)]);
  const { status, body } = await fetch(url, { ...init, headers: all, signal: late });
  await body?.cancel();
  return status === 401;
}

interface Part {
  /** What the part of a file is called in errors. */
  readonly label: string;
  readonly list: (server: Server) => readonly {
    readonly names: readonly string[];
    readonly examine: (signal: AbortSignal) => Promise<readonly Finding[]>;
  }[];
  /** The state of a file without the part, and the remedy. */
  readonly missing: string;
}

/** The parts of a server file that doctor examines, by their options. */
const PARTS: Readonly<Record<string, Part>> = {
  store: {
    label: "store",
    list: (server) =>
      listStores(server).map((used) => ({
        names: used.names,
        examine: async (signal) => await (await import("./doctor/store_checks.ts")).examineStore(used, signal),
      })),
    missing: "its server has no store; pass a store, as in createServer({ store, secret })",
  },
  "sign-in": {
    label: "sign-in",
    list: (server) =>
      listSignIns(server).map((used) => ({
        names: [used.name],
        examine: async (signal) => await (await import("./doctor/sign_in_checks.ts")).examineSignIn(used, { signal }),
      })),
    missing: "its server has no oauthProxy(); to examine another sign-in, serve the file, and name the server's URL",
  },
};

async function diagnoseFile(args: Args, name: string): Promise<number> {
  const { operands: [target], flags } = args;
  const { label, list, missing } = PARTS[name];
  rejectRest(args, `doctor --${name}`);
  if (!target) throw new UsageError(`Cannot examine a ${label}: no file is named; write doctor server.ts --${name}`);
  rejectSecond(args.operands, { verb: "examine", limit: "doctor examines one file" });
  if (/^https?:/i.test(target)) {
    throw new UsageError(
      `Cannot examine the ${label} of ${target}: it is a URL; name the file that exports the server`,
    );
  }
  const other = ["header", "origin", "heartbeat", "timeout", "for"].find((name) => name in flags);
  if (other) {
    throw new UsageError(`Cannot use --${other} with --${name}: no request is sent over HTTP; remove --${other}`);
  }
  const { server } = await load(target);
  try {
    const found = list(server);
    if (!found.length) throw new CliError(`Cannot examine the ${label} of ${target}: ${missing}`);
    const { stop, signal } = stopOnSignal();
    const findings: Finding[] = [];
    for (const { names, examine } of found) {
      const suffix = found.length > 1 ? ` (${names.join(", ")})` : "";
      for (const each of await examine(signal)) findings.push({ ...each, check: each.check + suffix });
    }
    console.log("json" in flags ? toJson({ file: target }, findings) : toReport(findings));
    return toExitCode(findings, stop);
  } finally {
    await server.close();
  }
}

function stopOnSignal() {
  const stop = platform.abortOnSignal();
  const { signal } = stop.controller;
  const notice = "Stopping after the current test. Press Ctrl-C again to stop immediately.";
  signal.addEventListener("abort", () => console.error(notice));
  return { stop, signal };
}

function toExitCode(findings: readonly Finding[], { exitCode }: { readonly exitCode: number }): number {
  return exitCode || (findings.some(({ level }) => level === "problem") ? 1 : 0);
}

function refuseUrl(url: string | undefined): UsageError {
  const action = `Cannot examine ${url || "a server"}`;
  if (!url) {
    return new UsageError(`${action}: no URL is named; write the server's URL, such as http://127.0.0.1:3000/mcp`);
  }
  if (/^[\w.-]+:\d+(\/|$)/.test(url)) return new UsageError(`${action}: it has no scheme; write http:// before it`);
  if (/\.([cm]?[jt]s|jsonc?)$/i.test(url)) {
    return new UsageError(
      `${action}: it is a file; use the check command, add --store or --sign-in to examine a part, or serve the file with ` +
        "--http and name the URL",
    );
  }
  return new UsageError(`${action}: it is not an HTTP URL; write the server's URL, such as http://127.0.0.1:3000/mcp`);
}

function readMs(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return;
  const ms = Number(text) * 1000;
  if (/^[\d.]+$/.test(text) && ms > 0 && ms <= 600_000) return ms;
  throw new UsageError(
    `Cannot use --${name} ${text}: it is not a number of seconds up to 600; write a number, such as 30`,
  );
}

function toReport(findings: readonly Finding[]): string {
  const width = Math.max(0, ...findings.map(({ check }) => check.length));
  const indent = " ".repeat(width + 11);
  const lines = findings.flatMap(({ level, check, message, fix }) => [
    `${level.padEnd(7)}  ${check.padEnd(width)}  ${message}`,
    ...fix === undefined ? [] : [`${indent}-> ${fix}`],
  ]);
  const [problems, notes] = [count(findings, "problem"), count(findings, "note")];
  const summary = problems ? toCount(problems, "problem") : "No problems";
  return [...lines, "", `${summary}${notes ? `, ${toCount(notes, "note")}` : ""}.`].join("\n");
}

function toJson(
  examined: { readonly url: string; readonly questions?: readonly Question[] } | { readonly file: string },
  findings: readonly Finding[],
): string {
  const [problems, notes] = [count(findings, "problem"), count(findings, "note")];
  return toPrintableJson(JSON.stringify({ ...examined, problems, notes, findings }, null, 2));
}

function count(findings: readonly Finding[], level: Finding["level"]): number {
  return findings.filter((each) => each.level === level).length;
}
