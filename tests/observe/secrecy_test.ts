// Secrets in spans, metrics, labels, logs, audit records, transcripts and counts. Each place where a caller, a handler
// or a configuration can put a secret contains a different secret.
import { context, propagation } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from "@opentelemetry/core";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { assert, assertEquals } from "@std/assert";
import { McpError, type Observer, prompt, resource, tool, ToolError } from "../../mod.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { audit, health, jsonLog, prometheus, record } from "../../src/observe/observe.ts";
import { openTelemetry, openTelemetryClient } from "../../src/observe/opentelemetry.ts";
import { toSpanUri } from "../../src/observe/operation.ts";
import { behaviour } from "../support/behaviour.ts";
import { throwing } from "../support/throwing.ts";
import { testServer } from "../support/test_server.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SCRAPE = "scrape-7d41f2a09c3be856";

/** Returns a secret that names its place. */
const s = (place: string) => `s3cr3t-${place}-5f0c9b2e71`;

/** Returns the places whose secrets appear in a text. */
function findPlaces(text: string): readonly string[] {
  return [...new Set([...text.matchAll(/s3cr3t-(\w+)-5f0c9b2e71/gi)].map(([, place]) => place))].sort();
}

const text = { type: "object", properties: { note: { type: "string" } } } as const;
const question = { type: "object", properties: { answer: { type: "string" } } } as const;

const handlers = [
  tool({
    name: "fine",
    input: text,
    async run(_, ctx) {
      await ctx.log.warning({ message: s("log") });
      await ctx.progress(1, { message: s("progress") });
      return { result: s("result") };
    },
  }),
  tool({ name: "tool_error", run: throwing(new ToolError(s("toolError"))) }),
  tool({ name: "mcp_error", run: throwing(new McpError(-31001, s("mcpError"), { data: s("mcpErrorData") })) }),
  tool({
    name: "fault",
    run() {
      const error = new Error(`a\n    at ${s("faultMessage")}`, { cause: new Error(s("faultCause")) });
      // The stack was created with the original message, which must not leak either.
      error.message = `b: ${error.message} ${s("changedMessage")}`;
      throw Object.assign(error, { field: s("faultField") });
    },
  }),
  tool({
    name: "asks",
    run: async (_, ctx) => (await ctx.elicit("a", { message: s("question"), schema: question })).action,
  }),
  prompt({
    name: "greet",
    input: { type: "object", properties: { who: { type: "string" } } },
    run: () => s("promptText"),
  }),
  resource({
    uri: "note://{id}{?token}",
    name: "note",
    complete: { id: () => [s("completed")] },
    read: () => s("contents"),
  }),
];

/** Creates all observers and the audit log, and collects what each of them outputs. */
function watch() {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter } as never)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(
    new CompositePropagator({ propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()] }),
  );
  const tracer = provider.getTracer("test");
  const measured: unknown[] = [];
  const meter = { createHistogram: () => ({ record: (_: number, labels: unknown) => void measured.push(labels) }) };
  const metrics = prometheus({ token: SCRAPE });
  const [logged, recorded, audited]: string[][] = [[], [], []];
  const observer: readonly Observer[] = [
    openTelemetry({ tracer, meter }),
    metrics,
    jsonLog({ write: (line) => void logged.push(line) }),
    record({ write: (line) => void recorded.push(line) }),
  ];
  const use = [audit({ write: (entry) => void audited.push(JSON.stringify(entry)) })];
  const clientUse = [openTelemetryClient({ tracer, meter })];
  const spans = () =>
    JSON.stringify(
      exporter.getFinishedSpans().map(({ name, attributes, status, events, links, resource }) => [
        name,
        attributes,
        status,
        events,
        links.map(({ attributes }) => attributes),
        resource.attributes,
      ]),
    );
  return {
    options: { observer, use },
    clientUse,
    read: (): Readonly<Record<string, string>> => ({
      spans: spans(),
      metrics: JSON.stringify(measured),
      prometheus: metrics.text(),
      log: logged.join("\n"),
      record: recorded.join("\n"),
      audit: audited.join("\n"),
    }),
    [Symbol.dispose]() {
      context.disable();
      propagation.disable();
    },
  };
}

/** Runs requests, whether the server accepts or refuses them. */
async function settle(...requests: readonly (() => Promise<unknown>)[]): Promise<void> {
  for (const request of requests) await request().catch(() => {});
}

/** The parts of messages that a transcript is meant to contain. */
const MESSAGES = [
  ...[
    "argument",
    "answer",
    "baggage",
    "completed",
    "completionContext",
    "completionValue",
    "contents",
    "fragment",
    "log",
  ],
  ...["mcpError", "mcpErrorData", "metaValue", "password", "path", "progress", "promptArgument", "promptText", "query"],
  ...["question", "result", "subscribed", "toolError", "tracestate", "unknownMethod", "unknownPrompt", "unknownQuery"],
  "unknownTool",
];

/** By output, the places whose secrets the output is allowed to contain. Any other secret is a leak. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  // By the conventions, a span contains the path in a resource's URI.
  spans: ["path"],
  metrics: [],
  prometheus: [],
  // The name of an unknown method is neither an argument nor a credential, and shows which method a client tried to
  // call.
  log: ["unknownMethod"],
  record: MESSAGES,
  // The called handler, with its unmodified arguments.
  audit: [
    "argument",
    "fragment",
    "password",
    "path",
    "promptArgument",
    "query",
    "unknownPrompt",
    "unknownQuery",
    "unknownTool",
  ],
};

function check(parts: Readonly<Record<string, string>>): void {
  for (const [part, content] of Object.entries(parts)) {
    assert(content.length > 2, `${part} is empty`);
    const leaks = findPlaces(content).filter((place) => !ALLOWED[part].includes(place));
    assertEquals(leaks, [], `${part}: ${content.slice(0, 300)}`);
  }
}

const principal = { id: "ada", scopes: [s("scope")], claim: s("claim"), nested: { token: s("nestedClaim") } };

behaviour(
  "no secret from a message, a handler or a caller is in the data that observers keep, except at the listed places",
  async (connect, { era }) => {
    using watched = watch();
    const { client, server, takeFaults } = await connect({
      ...watched.options,
      handlers,
      sessionData: () => ({ value: s("sessionData") }),
    }, {
      principal,
      onElicit: () => ({ action: "accept", content: { answer: s("answer") } }),
    });
    const _meta = {
      traceparent: `00-${TRACE}-00f067aa0ba902b7-01`,
      tracestate: `vendor=${s("tracestate")}`,
      baggage: `user=${s("baggage")}`,
      "com.example/own": s("metaValue"),
    };
    const ref = { type: "ref/resource", uri: "note://{id}{?token}" } as const;
    await settle(
      () => client.request("tools/call", { name: "fine", arguments: { note: s("argument") }, _meta }),
      ...["tool_error", "mcp_error", "fault", "asks", s("unknownTool")].map((name) => () => client.callTool(name)),
      () => client.getPrompt("greet", { who: s("promptArgument") }),
      () => client.getPrompt(s("unknownPrompt")),
      () =>
        client.complete(ref, { name: "id", value: s("completionValue") }, {
          arguments: { token: s("completionContext") },
        }),
      () => client.readResource(`note://1?token=${s("query")}`),
      () => client.readResource(`note://${s("path")}`),
      () => client.readResource(`https://ada:${s("password")}@a.example/?${s("unknownQuery")}#${s("fragment")}`),
      () => client.request(s("unknownMethod"), {}),
      async () => {
        await using subscription = await client.subscribe({
          resourceSubscriptions: [`note://2?token=${s("subscribed")}`],
        });
        assertEquals(subscription.received.length, 0);
      },
    );
    takeFaults();
    const own = await connectClient(server, { era, use: watched.clientUse });
    await settle(
      () => own.callTool("fine", { note: s("argument") }),
      ...["tool_error", "mcp_error"].map((name) => () => own.callTool(name)),
      () => own.getPrompt("greet", { who: s("promptArgument") }),
      () => own.readResource(`note://1?token=${s("query")}`),
    );
    await own.close();
    const parts = watched.read();
    // The transcript must contain these values. If it did not, it would show nothing about the requests.
    for (const place of ["argument", "result", "promptArgument", "contents"]) {
      assert(findPlaces(parts.record).includes(place), place);
    }
    assert(parts.spans.includes('"mcp.resource.uri":"note://1?token=REDACTED"'), "the URI of a resource has changed");
    check(parts);
    assertEquals(findPlaces(JSON.stringify(server.stats())), []);
  },
);

for (const version of ["2026-07-28", "2025-11-25"]) {
  Deno.test(`no credential, header, URL or session id is in the data that observers keep (${version})`, async () => {
    using watched = watch();
    const routes = [health()];
    const server = testServer({
      path: "/tenants/:tenant/mcp",
      handlers,
      ...watched.options,
      observer: [...watched.options.observer, { fault() {} }],
      routes,
      auth: (request: Request) =>
        request.headers.get("authorization") === `Bearer ${s("token")}` ? principal : undefined,
    });
    const headers = {
      authorization: `Bearer ${s("token")}`,
      cookie: `session=${s("cookie")}`,
      "x-api-key": s("header"),
      [`x-${s("headerName")}`]: "1",
      baggage: `user=${s("httpBaggage")}`,
      tracestate: `vendor=${s("httpTracestate")}`,
      traceparent: `00-${TRACE}-00000000000000aa-01`,
      "user-agent": s("userAgent"),
      referer: `https://a.example/?${s("referer")}`,
    };
    const url = `http://localhost/tenants/acme/mcp?access_token=${s("urlQuery")}`;
    const isModern = version === "2026-07-28";
    let sessionId = "";
    /** Sends a message as clients of this revision do. `more` replaces headers. */
    const post = async (more: Record<string, string>, text: string, target = url) => {
      const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
      const own = { "mcp-protocol-version": version, ...sessionId && { "mcp-session-id": sessionId } };
      const init = { method: "POST", headers: { ...json, ...headers, ...own, ...more }, body: text };
      const response = await server.fetch(new Request(target, init));
      sessionId ||= response.headers.get("mcp-session-id") ?? "";
      await response.text();
      return response.status;
    };
    const send = async (
      method: string,
      params: Record<string, unknown>,
      more: Record<string, string> = {},
      target = url,
    ) => {
      const subject: Record<string, string> = typeof params.name === "string" ? { "mcp-name": params.name } : {};
      const modern = isModern ? { "mcp-method": method, ...subject } : {};
      const _meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
      };
      const message = { jsonrpc: "2.0", id: 1, method, params: isModern ? { ...params, _meta } : params };
      return await post({ ...modern, ...more }, JSON.stringify(message), target);
    };
    if (!isModern) {
      const info = { protocolVersion: version, capabilities: {}, clientInfo: { name: "test", version: "1" } };
      assertEquals(await send("initialize", info), 200);
      assert(sessionId.length > 20);
      await send("ping", {}, { "mcp-session-id": s("wrongSession") });
    }
    const statuses = ["fine", "tool_error", "mcp_error", "fault"].map(async (name) =>
      await send("tools/call", { name, arguments: {} })
    );
    assertEquals(await Promise.all(statuses), isModern ? [200, 200, 400, 200] : [200, 200, 200, 200]);
    // Send values that the server refuses: a credential, a path, a host, an origin, a body, a version, and invalid
    // messages.
    const ping = async (more: Record<string, string>, target = url) => await send("tools/list", {}, more, target);
    await ping({ authorization: `Bearer ${s("wrongToken")}` });
    await ping({ authorization: `Basic ${btoa(s("basic"))}` });
    await ping({}, `http://localhost/${s("wrongPath")}/mcp`);
    await ping({}, `http://${s("wrongHost")}.example/tenants/acme/mcp`);
    await ping({ origin: `https://${s("wrongOrigin")}.example` });
    await ping({ "content-type": `text/${s("wrongType")}` });
    await ping({ accept: `text/${s("wrongAccept")}` });
    await ping({ "mcp-protocol-version": s("wrongVersion") });
    await post({}, `{"jsonrpc": "2.0", "${s("brokenBody")}`);
    await send("tools/call", { name: "fine", arguments: s("wrongArguments") });
    await send("tools/call", { name: "fine", arguments: { note: { [s("argumentKey")]: 1 } } });
    await send("tools/call", { name: "asks", requestState: s("requestState"), inputResponses: { a: s("answer") } });
    const reason = { requestId: 1, reason: s("cancelReason") };
    await post({}, JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: reason }));
    await post({}, JSON.stringify({ jsonrpc: "2.0", id: 1, result: { answer: s("strayAnswer") } }));
    const probe = new Request("http://localhost/ready", { headers });
    const details = await (await server.fetch(probe)).text();
    assert(details.length > 0);
    assertEquals(findPlaces(details), []);
    assertEquals(findPlaces(JSON.stringify(server.stats())), []);
    await server.close();
    const parts = watched.read();
    // The response to a request of an unknown revision repeats the revision.
    const bodies = [
      "wrongVersion",
      "wrongArguments",
      "argumentKey",
      "answer",
      "strayAnswer",
      "cancelReason",
      "brokenBody",
    ];
    const inner = ["log", "progress", "result", "toolError", "mcpError", "mcpErrorData"];
    for (const [part, content] of Object.entries(parts)) {
      const allowed = part === "record"
        ? [...bodies, ...inner]
        : part === "audit"
        ? ["wrongArguments", "argumentKey"]
        : [];
      assertEquals(
        findPlaces(content).filter((place) => !allowed.includes(place)),
        [],
        `${part}: ${content.slice(0, 300)}`,
      );
      assert(!sessionId || !content.includes(sessionId), `${part} contains the session id`);
    }
  });
}

Deno.test("the URI in a span contains no password, no query value and no fragment", () => {
  const cases = {
    "note://1": "note://1",
    "https://ada:b@c@a.example/x@y?a=1&b=2&c&=d#e":
      "https://REDACTED@a.example/x@y?a=REDACTED&b=REDACTED&REDACTED&=REDACTED",
    "file:///a?": "file:///a?REDACTED",
    "urn:a:b@c": "urn:a:b@c",
    "a:b\n?c=d\ne": "a:b\n?c=REDACTED",
  };
  for (const [uri, expected] of Object.entries(cases)) assertEquals(toSpanUri(uri), expected);
  assert(toSpanUri(`a:?${"b=&".repeat(100_000)}`).length <= 1000);
});
