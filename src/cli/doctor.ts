/**
 * `mcp doctor url`: walks through a server over HTTP as clients do, and says what is wrong and how to mend it.
 *
 * @module
 */
import { toPrintableJson } from "../protocol/printable.ts";
import type { Args } from "./args.ts";
import type { Command } from "./command.ts";
import type { Finding } from "./doctor/report.ts";
import { readHeaders } from "./headers.ts";
import { platform } from "./platform.ts";
import { toCount } from "./listing.ts";
import { UsageProblem } from "./problem.ts";

/** Examines a server. */
export const doctor: Command = {
  name: "doctor",
  summary: "Find out what is wrong with a server over HTTP, and how to mend it",
  usage: `doctor url [--header N=V …] [--origin O] [--heartbeat S] [--timeout S] [--json]

It looks at the address, the revisions, sessions, streams, what web pages may do, tokens, and what the server lists. It
calls no tool, and changes nothing but sessions, which it begins and ends. A problem breaks what the protocol demands,
or lets somebody in or keeps somebody out; a note is worth knowing.

--header N=V   a header of every request, such as authorization="Bearer …"; may be there more than once
--origin O     the origin of a web page that should be let in; if nothing is said, that none is let in is a note
--heartbeat S  seconds to wait for a sign of life on a quiet stream; none are waited if nothing is said
--timeout S    seconds that the server may take for an answer; 5 if nothing is said
--json         print everything as one JSON document

Ctrl-C ends it with what was found until then, and the exit code is 130.

For example:
  doctor http://127.0.0.1:3000/mcp
  doctor https://mcp.example.com/mcp --header authorization="Bearer …" --heartbeat 30
  doctor http://127.0.0.1:3000/mcp --origin http://localhost:6274 --json`,
  flags: { header: true, origin: true, heartbeat: true, timeout: true, json: false },
  fails: "if there are problems",
  run: examineServer,
};

async function examineServer({ operands: [url, extra], flags, all }: Args): Promise<number> {
  if (url === undefined || !/^https?:/i.test(url) || !URL.canParse(url)) {
    throw new UsageProblem(`Cannot examine ${url ?? "a server"}: give its URL, such as http://127.0.0.1:3000/mcp`);
  }
  if (extra !== undefined) throw new UsageProblem(`Cannot examine ${extra} beside ${url}: name one URL`);
  const { origin } = flags;
  if (origin !== undefined && !(URL.canParse(origin) && new URL(origin).origin === origin)) {
    throw new UsageProblem(`Cannot let ${origin} in: an origin is a scheme and a host, such as http://localhost:6274`);
  }
  const headers = readHeaders(all.header);
  const [timeoutMs, heartbeatMs] = [readMs("timeout", flags.timeout), readMs("heartbeat", flags.heartbeat)];
  const { examine } = await import("./doctor/examination.ts");
  const stop = new AbortController();
  let stopped = 0;
  platform.onSignal((code) => {
    if (stopped) platform.exit(code);
    stopped = code;
    console.error("Stopping; what was begun is ended, and another Ctrl-C ends it at once.");
    stop.abort();
  });
  const findings = await examine({
    url: new URL(url).href,
    headers,
    origin,
    timeoutMs,
    heartbeatMs,
    signal: stop.signal,
    sendAs: platform.sendAs,
  });
  console.log("json" in flags ? toJson(url, findings) : toReport(findings));
  if (stopped) return stopped;
  return findings.some(({ level }) => level === "problem") ? 1 : 0;
}

function readMs(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return;
  const ms = Number(text) * 1000;
  if (/^[\d.]+$/.test(text) && ms > 0 && ms <= 600_000) return ms;
  throw new UsageProblem(`Cannot wait for ${text}: write --${name} with seconds, up to 600`);
}

function toReport(findings: readonly Finding[]): string {
  const width = Math.max(0, ...findings.map(({ check }) => check.length));
  const indent = " ".repeat(width + 11);
  const lines = findings.flatMap(({ level, check, message, fix }) => [
    `${level.padEnd(7)}  ${check.padEnd(width)}  ${message}`,
    ...fix === undefined ? [] : [`${indent}-> ${fix}`],
  ]);
  const [problems, notes] = [count(findings, "problem"), count(findings, "note")];
  const told = problems ? toCount(problems, "problem") : "No problems";
  return [...lines, "", `${told}${notes ? `, ${toCount(notes, "note")}` : ""}.`].join("\n");
}

function toJson(url: string, findings: readonly Finding[]): string {
  const [problems, notes] = [count(findings, "problem"), count(findings, "note")];
  return toPrintableJson(JSON.stringify({ url, problems, notes, findings }, null, 2));
}

function count(findings: readonly Finding[], level: Finding["level"]): number {
  return findings.filter((each) => each.level === level).length;
}
