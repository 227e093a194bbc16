/**
 * `mcp doctor`: sends a server over HTTP the requests that clients send, and reports problems with their fixes.
 *
 * @module
 */
import { toPrintableJson } from "../kit/printable.ts";
import type { Args } from "./args.ts";
import type { Command } from "./command.ts";
import type { Finding } from "./doctor/report.ts";
import { readHeaders } from "./header_flags.ts";
import { platform } from "./platform.ts";
import { toCount } from "./listing.ts";
import { UsageError } from "./cli_error.ts";

/** The command `doctor`. */
export const doctor: Command = {
  name: "doctor",
  summary: "Diagnose a server over HTTP, and suggest fixes",
  usage: ["doctor [OPTIONS] URL"],
  description: [
    "The command tests the address, protocol revisions, sessions, streams, access from web pages, tokens, and the " +
    "server's lists. It calls no tools, and changes nothing but the sessions that it creates and deletes.",
    "A problem violates the protocol, admits clients that should be rejected, or rejects clients that should be " +
    "admitted. A note is a recommendation.",
  ],
  options: {
    header: {
      value: "NAME=VALUE",
      isRepeatable: true,
      text: 'HTTP header of every request, such as authorization="Bearer …"; may be repeated',
    },
    origin: {
      value: "ORIGIN",
      text: "Origin of a web page that the server should admit, such as http://localhost:6274",
    },
    heartbeat: {
      value: "SECONDS",
      text: "Time to wait for a heartbeat on an idle stream, up to 600 (default: do not wait)",
    },
    timeout: { value: "SECONDS", text: "Time the server may take to respond, up to 600 (default: 5)" },
    json: { text: "Print one JSON document" },
  },
  examples: [
    "doctor http://127.0.0.1:3000/mcp",
    'doctor https://mcp.example.com/mcp --header authorization="Bearer …" --heartbeat 30',
    "doctor http://127.0.0.1:3000/mcp --origin http://localhost:6274 --json",
  ],
  exitCodes: { 1: "The command found problems", 130: "Stopped with Ctrl-C; the results so far are printed" },
  run: diagnose,
};

async function diagnose({ operands: [url, extra], flags, all, rest }: Args): Promise<number> {
  if (rest) {
    throw new UsageError("Cannot examine a command: it does not serve HTTP; use inspect, or name a URL");
  }
  if (url === undefined || !/^https?:/i.test(url) || !URL.canParse(url)) throw refuseUrl(url);
  if (extra !== undefined) throw new UsageError(`Cannot examine ${url} and ${extra}: name one URL`);
  const { origin } = flags;
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).origin === origin)) {
    throw new UsageError(
      `Cannot use the origin ${origin}: it is not a scheme and a host; write it as http://localhost:6274`,
    );
  }
  const headers = readHeaders(all.header);
  const [timeoutMs, heartbeatMs] = [readMs("timeout", flags.timeout), readMs("heartbeat", flags.heartbeat)];
  const { examine } = await import("./doctor/examination.ts");
  const stop = new AbortController();
  let stopped = 0;
  platform.onSignal((code) => {
    stopped = code;
    console.error("Stopping after the current test. Press Ctrl-C again to stop at once.");
    stop.abort();
  });
  const findings = await examine({
    url: new URL(url).href,
    headers,
    origin,
    timeoutMs,
    heartbeatMs,
    signal: stop.signal,
    lookUp: platform.lookUp,
  });
  console.log("json" in flags ? toJson(url, findings) : toReport(findings));
  if (stopped) return stopped;
  return findings.some(({ level }) => level === "problem") ? 1 : 0;
}

function refuseUrl(url: string | undefined): UsageError {
  const action = `Cannot examine ${url || "a server"}`;
  if (!url) return new UsageError(`${action}: no URL is named; write its URL, such as http://127.0.0.1:3000/mcp`);
  if (/^[\w.-]+:\d+(\/|$)/.test(url)) return new UsageError(`${action}: it has no scheme; write http:// before it`);
  if (/\.([cm]?[jt]s|jsonc?)$/i.test(url)) {
    return new UsageError(`${action}: it is a file; use check, or serve it with --http and name its URL`);
  }
  return new UsageError(`${action}: it is not an HTTP URL; write its URL, such as http://127.0.0.1:3000/mcp`);
}

function readMs(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return;
  const ms = Number(text) * 1000;
  if (/^[\d.]+$/.test(text) && ms > 0 && ms <= 600_000) return ms;
  throw new UsageError(
    `Cannot wait ${text}: it is not a number of seconds up to 600; write --${name} with such a number`,
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

function toJson(url: string, findings: readonly Finding[]): string {
  const [problems, notes] = [count(findings, "problem"), count(findings, "note")];
  return toPrintableJson(JSON.stringify({ url, problems, notes, findings }, null, 2));
}

function count(findings: readonly Finding[], level: Finding["level"]): number {
  return findings.filter((each) => each.level === level).length;
}
