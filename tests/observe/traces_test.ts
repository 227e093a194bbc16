// Traces of 1,000 concurrent calls through two servers on each runtime, as a collector receives them.
import { assert, assertEquals } from "@std/assert";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { root, run } from "../support/processes.ts";
import { testProcesses } from "../support/command_line.ts";
import { BOUNDS, CLIENT_SPAN, METRICS, SERVER_SPAN } from "./conventions.ts";
import { type CollectedMetric, type CollectedSpan, type Collector, startCollector } from "./collector.ts";

const CALLS = 1000;
/**
 * Milliseconds after which a program is killed. A program takes ten seconds of CPU time, and a loaded machine gives it
 * only a small part of a core.
 */
const RUN_MS = 600_000;
const program = `${root}tests/observe/telemetry_program.ts`;

async function findCommands(): Promise<Readonly<Record<string, readonly string[]>>> {
  const node = await findNode(NODE_VERSIONS[0]);
  return {
    deno: ["deno", "run", "-A", "--no-check", program],
    bun: ["bun", "--preload", `${root}tests/support/bun_imports.ts`, program],
    ..."path" in node && { node: [node.path, "--import", `${root}tests/support/node_preload.ts`, program] },
  };
}

async function trace(words: readonly string[], collector: Collector, more: Record<string, string> = {}): Promise<void> {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    // Each call in the outer server holds a connection while it waits for the inner server, so Bun must allow more
    // requests.
    BUN_CONFIG_MAX_HTTP_REQUESTS: "8192",
    CALLS: String(CALLS),
    ...more,
  };
  const { code, stderr } = await run(words, { env, timeoutMs: RUN_MS });
  assertEquals(code, 0, stderr);
}

/** The spans from the root to the query, in order, each with its kind. */
const PATH = [
  ["root", 1],
  ["tools/call order", 3],
  ["tools/call order", 2],
  ["tools/call find", 3],
  ["tools/call find", 2],
  ["query", 3],
] as const;

/** Checks the spans from each query up to its root, ignoring HTTP spans. Returns the number of complete paths. */
function checkTrees(spans: readonly CollectedSpan[]): number {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  let complete = 0;
  for (const query of spans.filter(({ name }) => name === "query")) {
    const path = [query];
    for (let at = query; at.parentSpanId;) {
      const parent = byId.get(at.parentSpanId);
      if (!parent) break;
      path.unshift(parent);
      at = parent;
    }
    // The collector may not have received the parent, because the exporter may have dropped it.
    const names = path.map(({ name, kind }) => [name.replace(/^root .*/, "root"), kind]);
    assertEquals(names, PATH.slice(-names.length).map((each) => [...each]), "a span has a wrong parent");
    assert(path.every(({ traceId }) => traceId === query.traceId), "a child span is in another trace");
    if (path.length < PATH.length) continue;
    assertEquals(path[0].attributes.n, query.attributes.n, "a query is in another call's trace");
    complete++;
  }
  return complete;
}

const CALL = {
  "mcp.method.name": "tools/call",
  "gen_ai.operation.name": "execute_tool",
  "gen_ai.tool.name": "find",
  "network.transport": "tcp",
  "network.protocol.name": "http",
};
/** The attributes of a call's server span. In a session, the span also has the session id. */
const SERVER_CALL = {
  ...CALL,
  "mcp.protocol.version": "string",
  "jsonrpc.request.id": "string",
  "client.address": "127.0.0.1",
};
/**
 * The attributes of a call's client span. A request id is missing, because the span covers all requests of a call that
 * asks the user.
 */
const CLIENT_CALL = { ...CALL, "server.address": "127.0.0.1", "server.port": "number" };

function checkNames(spans: readonly CollectedSpan[], metrics: readonly CollectedMetric[]): void {
  const ours = spans.filter(({ attributes }) => "mcp.method.name" in attributes);
  for (const { attributes, kind, name } of ours) {
    const known = kind === 2 ? SERVER_SPAN : CLIENT_SPAN;
    assertEquals(Object.keys(attributes).filter((key) => !known.has(key)), [], name);
    const tool = attributes["gen_ai.tool.name"];
    assertEquals(name, [attributes["mcp.method.name"], ...tool === undefined ? [] : [tool]].join(" "));
  }
  for (const [kind, expected] of [[2, SERVER_CALL], [3, CLIENT_CALL]] as const) {
    const calls = ours.filter((span) => span.name === "tools/call find" && span.kind === kind);
    assert(calls.length > 100, `${calls.length} spans of kind ${kind}`);
    for (const { attributes } of calls) {
      const { "mcp.session.id": session, ...rest } = attributes;
      const others: Record<string, unknown> = rest;
      // The values of these attributes differ between calls and runs.
      for (const name of ["jsonrpc.request.id", "server.port", "mcp.protocol.version"]) {
        if (name in others) others[name] = typeof others[name];
      }
      assertEquals(others, expected);
      const hasSession = kind === 2 && attributes["mcp.protocol.version"] === "2025-11-25";
      assertEquals(session !== undefined, hasSession, JSON.stringify(attributes));
    }
  }
  const [wrong] = ours.filter(({ name, kind }) => name === "tools/call wrong" && kind === 2);
  assertEquals([wrong.attributes["error.type"], wrong.status.code], ["tool_error", 2]);
  assertEquals(wrong.attributes["gen_ai.operation.name"], "execute_tool");
  const durations = metrics.filter(({ name }) => name.startsWith("mcp."));
  for (const { name, unit, points } of durations) {
    assertEquals(unit, "s");
    for (const { attributes, explicitBounds } of points) {
      assertEquals(explicitBounds, BOUNDS);
      assertEquals(Object.keys(attributes).filter((key) => !METRICS[name].has(key)), [], name);
    }
  }
  assertEquals(new Set(durations.map(({ name }) => name)), new Set(Object.keys(METRICS)));
  assert(!JSON.stringify([spans, metrics]).includes("argument-5512"), "a tool's message is in a trace");
}

for (const name of ["deno", "bun", "node"]) {
  testProcesses(`${name}: with the SDK, each of 1,000 concurrent calls is one trace`, async () => {
    const { [name]: words } = await findCommands();
    if (!words) throw new Error(`Cannot test on ${name}: it cannot be downloaded`);
    await using collector = startCollector();
    await trace(words, collector);
    assertEquals(checkTrees(collector.spans), 2 * CALLS);
    checkNames(collector.spans, collector.metrics);
  });
}

testProcesses("Deno's own telemetry creates the same traces, and links the HTTP spans", async () => {
  const { deno: words } = await findCommands();
  await using collector = startCollector();
  await trace(words, collector, { OTEL_DENO: "true", OTEL_METRIC_EXPORT_INTERVAL: "500" });
  const { spans, metrics } = collector;
  // In a burst, Deno's exporter drops spans.
  assert(checkTrees(spans) > 100, `only ${spans.length} spans have arrived`);
  checkNames(spans, metrics);
  const posts = new Map(spans.filter(({ name }) => name === "POST").map((span) => [span.spanId, span]));
  const linked = spans.filter(({ name, kind, links }) => name === "tools/call find" && kind === 2 && links.length);
  assert(linked.length > 100, `only ${linked.length} spans have links`);
  for (const { links: [{ spanId }], traceId } of linked) {
    const post = posts.get(spanId);
    if (post) assertEquals(post.traceId, traceId);
  }
});
