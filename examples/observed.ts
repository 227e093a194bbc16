// A server with metrics at /metrics, health checks at /health and /ready, a JSON log, and an audit log. The environment
// variable METRICS_TOKEN contains the token that Prometheus must send.
import process from "node:process";
import { createServer, tool, ToolError } from "@x/mcp";
import { audit, type AuditRecord, health, jsonLog, prometheus } from "@x/mcp/observe";
import { z } from "zod";

const metrics = prometheus({ token: process.env.METRICS_TOKEN ?? crypto.randomUUID() });

const transfer = tool({
  name: "transfer",
  title: "Transfer money",
  description: "Transfer money between accounts",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  input: z.object({ from: z.string(), to: z.string(), cents: z.number().int().positive() }),
  run({ from, to, cents }) {
    if (from === to) throw new ToolError("The accounts are the same");
    return `${cents} cents are on their way`;
  },
});

/** The records of the audit log. A real server would write these records to a file or a database. */
export const kept: AuditRecord[] = [];

const auditLog = audit({
  // Keeps only the last two characters of account numbers in the log.
  redact(intent) {
    const { cents, from, to } = Object(intent.arguments);
    const hide = (account: unknown) => typeof account === "string" ? `…${account.slice(-2)}` : undefined;
    return { ...intent, arguments: { cents, from: hide(from), to: hide(to) } };
  },
  write: (record) => void kept.push(record),
});

export default createServer({
  name: "bank",
  version: "1.0.0",
  handlers: [transfer],
  observer: [metrics, jsonLog()],
  use: [auditLog],
  routes: [health(), metrics],
});
