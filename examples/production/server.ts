// The server: its handlers, its callers and its limits. `mcp check`, `inspect` and tests use this file; main.ts serves
// it.
import { createServer } from "@x/mcp";
import { audit, health, jsonLog, prometheus } from "@x/mcp/observe";
import { openTelemetry } from "@x/mcp/observe/opentelemetry";
import { sqliteStore } from "@x/mcp/stores/sqlite";
import { tasks } from "@x/mcp/tasks";
import { admit, path, pathSchema, people } from "./access.ts";
import { config } from "./config.ts";
import { openDatabase } from "./database.ts";
import { report } from "./report.ts";
import { close, list, open, ticket } from "./tickets.ts";

const metrics = prometheus({ token: config.metricsToken });

export default createServer({
  name: "tickets",
  version: "1.0.0",
  path,
  pathSchema,
  auth: people,
  admit,
  hosts: config.hosts,
  proxies: config.proxies,
  secret: config.secret,
  // All processes share tasks, ended sessions and one-time links in this store.
  store: sqliteStore(() => openDatabase("state")),
  limits: { perTenant: { running: 50 } }, // In each process, one tenant cannot occupy the calls of the other tenants.
  handlers: [ticket, list, open, close, report, tasks()],
  use: [audit({ write: (record) => console.log(JSON.stringify(record)) })],
  observer: [openTelemetry(), metrics, jsonLog()],
  // Stay ready while the store fails, because the store fails for all processes, and the load balancer could not choose
  // a better process.
  routes: [health({ store: "optional" }), metrics],
});
