// Spans of single calls: their parents, links, children, names and errors.
import { context, metrics, propagation, ROOT_CONTEXT, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { extension, McpError, prompt, resource, tool, ToolError } from "../../mod.ts";
import { connect as connectClient } from "../../src/client/client.ts";
import { intent } from "../../src/layers/layers.ts";
import { openTelemetry, openTelemetryClient } from "../../src/observe/opentelemetry.ts";
import { behaviour, raise, textOf, until } from "../support/behaviour.ts";
import { toRequest } from "../support/requests.ts";
import { sentence } from "../support/messages.ts";
import { testServer } from "../support/test_server.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SECRET = "s3cret-5d20af";

const form = { type: "object", properties: { name: { type: "string" } } };
const handlers = [
  tool({ name: "fine", input: { type: "object" }, run: () => trace.getActiveSpan()?.spanContext().spanId ?? "none" }),
  tool({
    name: "wrong",
    input: { type: "object" },
    run: (input) => raise(new ToolError(JSON.stringify(input))),
  }),
  tool({
    name: "closed",
    input: { type: "object" },
    run: (input) => raise(new McpError(-31001, `closed ${JSON.stringify(input)}`)),
  }),
  tool({ name: "asks", run: async (_, ctx) => (await ctx.elicit("a", { message: SECRET, schema: form })).action }),
  tool({ name: "reads", run: async (_, ctx) => JSON.stringify(await ctx.readResource("note:1")) }),
  prompt({ name: "greet", run: () => "Hi" }),
  resource({ uri: "note:1", name: "note", read: () => "1" }),
];

/** Installs the OpenTelemetry SDK in this process. */
function install(hasPropagator = true) {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter } as never)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  if (hasPropagator) propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  return {
    tracer: provider.getTracer("test"),
    spans: () => exporter.getFinishedSpans(),
    [Symbol.dispose]() {
      context.disable();
      propagation.disable();
      metrics.disable();
    },
  };
}

const named = (spans: readonly ReadableSpan[], name: string) => spans.filter((span) => span.name === name);

behaviour("the span of a call has what layers have noted about it", async (connect) => {
  using sdk = install();
  const search = tool({ name: "search", use: [intent()], run: () => "" });
  const { client } = await connect({ handlers: [search], observer: openTelemetry({ tracer: sdk.tracer }) });
  await client.callTool("search", { task_at_hand: "Find invoices" });
  const [{ attributes }] = named(sdk.spans(), "tools/call search");
  assertEquals(attributes["mcp.note.task_at_hand"], "Find invoices");
});

behaviour(
  "spans have the names and errors that the conventions define, and no arguments",
  async (connect, { version }) => {
    using sdk = install();
    const { client } = await connect({ handlers, observer: openTelemetry({ tracer: sdk.tracer }) }, {
      onElicit: () => ({ action: "accept", content: { name: SECRET } }),
    });
    const text = textOf(await client.callTool("fine", { note: SECRET }));
    await client.callTool("wrong", { note: SECRET });
    await client.callTool("closed", { note: SECRET }).catch(() => {});
    await client.callTool("asks");
    await client.getPrompt("greet");
    await client.readResource("note:1");
    const [fine] = named(sdk.spans(), "tools/call fine");
    assertEquals([fine.kind, fine.spanContext().spanId, fine.status.code], [SpanKind.SERVER, text, 0]);
    assertEquals([fine.attributes["mcp.protocol.version"], fine.attributes["gen_ai.tool.name"]], [version, "fine"]);
    const [wrong] = named(sdk.spans(), "tools/call wrong");
    assertEquals([wrong.attributes["error.type"], wrong.status], ["tool_error", { code: 2 }]);
    const [closed] = named(sdk.spans(), "tools/call closed");
    assertEquals([closed.attributes["error.type"], closed.attributes["rpc.response.status_code"]], [
      "-31001",
      "-31001",
    ]);
    assertEquals(named(sdk.spans(), "prompts/get greet")[0].attributes["gen_ai.prompt.name"], "greet");
    assertEquals(named(sdk.spans(), "resources/read")[0].attributes["mcp.resource.uri"], "note:1");
    const asks = named(sdk.spans(), "tools/call asks");
    assert(asks.every(({ status }) => status.code === 0));
    const [question] = named(sdk.spans(), "elicitation/create");
    assertEquals([question.kind, question.parentSpanContext?.spanId], [SpanKind.CLIENT, asks[0].spanContext().spanId]);
    const all = sdk.spans().map(({ name, attributes, status, events }) => ({ name, attributes, status, events }));
    assert(!JSON.stringify(all).includes(SECRET));
  },
);

behaviour("a nested read and a handler's detached work have child spans of the handler's span", async (connect) => {
  using sdk = install();
  const later = extension({ id: "com.example/later", undeclared: true, sessions: true });
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
  const detached = tool({
    name: "detached",
    use: [later.layer({
      around(call, next) {
        next().catch(() => {});
        call.detach();
        return { content: [] };
      },
    })],
    run: () => mayEnd.then(() => "done"),
  });
  const { client } = await connect({
    handlers: [...handlers, later, detached],
    observer: openTelemetry({ tracer: sdk.tracer }),
  });
  await client.callTool("reads");
  await client.callTool("detached");
  end();
  await until(() => named(sdk.spans(), "tools/call detached").length === 2, "the detached run has ended");
  const [reads] = named(sdk.spans(), "tools/call reads");
  const [read] = named(sdk.spans(), "resources/read");
  assertEquals([read.parentSpanContext?.spanId, read.kind], [reads.spanContext().spanId, SpanKind.INTERNAL]);
  const [call, run] = named(sdk.spans(), "tools/call detached").toSorted((a) => a.kind === SpanKind.SERVER ? -1 : 1);
  assertEquals(run.parentSpanContext?.spanId, call.spanContext().spanId);
});

for (const hasPropagator of [true, false]) {
  Deno.test(`the parent is taken from _meta, or else from the active span, or else from the header (propagator: ${hasPropagator})`, async () => {
    using sdk = install(hasPropagator);
    const server = testServer({ handlers, observer: openTelemetry({ tracer: sdk.tracer }) });
    const sent = { _meta: { traceparent: `00-${TRACE}-00f067aa0ba902b7-01`, tracestate: "a=1" } };
    const headers = { traceparent: `00-${TRACE}-00000000000000aa-01` };
    const ambient = sdk.tracer.startSpan("http");
    const active = trace.setSpan(ROOT_CONTEXT, ambient);
    const call = async (params: Record<string, unknown>, more: Record<string, string>, within = ROOT_CONTEXT) => {
      const before = sdk.spans().length;
      const request = toRequest("tools/call", { name: "fine", ...params }, more);
      await (await context.with(within, () => server.fetch(request))).text();
      const [span] = sdk.spans().slice(before);
      const { traceId, spanId } = span.parentSpanContext ?? {};
      return [traceId, spanId, ...span.links.map((link) => link.context.spanId)];
    };
    const { traceId, spanId } = ambient.spanContext();
    assertEquals(await call(sent, {}), [TRACE, "00f067aa0ba902b7"]);
    assertEquals(await call(sent, headers), [TRACE, "00f067aa0ba902b7", "00000000000000aa"]);
    assertEquals(await call(sent, headers, active), [TRACE, "00f067aa0ba902b7", spanId]);
    assertEquals(await call({}, headers, active), [traceId, spanId]);
    assertEquals(await call({}, headers), [TRACE, "00000000000000aa"]);
    assertEquals(await call({}, {}), [undefined, undefined]);
    for (const traceparent of ["", "00-0-0-01", `ff-${TRACE}-00f067aa0ba902b7-01`, "x".repeat(90)]) {
      assertEquals(await call({ _meta: { traceparent } }, { traceparent }), [undefined, undefined]);
    }
    ambient.end();
  });
}

behaviour(
  "a client sends the context of its span, and this span becomes the parent of the server's span",
  async (connect, { era }) => {
    using sdk = install();
    const { server } = await connect({ handlers, observer: openTelemetry({ tracer: sdk.tracer }) });
    const use = [openTelemetryClient({ tracer: sdk.tracer })];
    await using client = await connectClient(server, { era, use });
    await sdk.tracer.startActiveSpan("root", async (root) => {
      await client.callTool("fine", {});
      root.end();
    });
    await client.callTool("wrong", { note: SECRET });
    await assertRejects(() => client.callTool("gone"));
    const [child] = named(sdk.spans(), "tools/call fine").filter(({ kind }) => kind === SpanKind.SERVER);
    const [span] = named(sdk.spans(), "tools/call fine").filter(({ kind }) => kind === SpanKind.CLIENT);
    const [root] = named(sdk.spans(), "root");
    assertEquals(child.parentSpanContext?.spanId, span.spanContext().spanId);
    assertEquals(span.parentSpanContext?.spanId, root.spanContext().spanId);
    const [wrong] = named(sdk.spans(), "tools/call wrong").filter(({ kind }) => kind === SpanKind.CLIENT);
    assertEquals([wrong.attributes["error.type"], wrong.status.code], ["tool_error", 2]);
    const [gone] = named(sdk.spans(), "tools/call gone");
    assertEquals([gone.attributes["error.type"], gone.status.code], ["-32602", 2]);
  },
  { transports: ["memory"] },
);

behaviour("`details` adds an error's message to the span's status", async (connect) => {
  using sdk = install();
  const { client } = await connect({ handlers, observer: openTelemetry({ tracer: sdk.tracer, details: true }) });
  await client.callTool("closed", { note: 1 }).catch(() => {});
  const [closed] = named(sdk.spans(), "tools/call closed");
  assertEquals(closed.status.message, 'closed {"note":1}');
});

Deno.test("a provider that is passed instead of a tracer or a meter is refused", () => {
  assertThrows(() => openTelemetry({ tracer: {} as never }), TypeError, sentence("provider.getTracer(name)"));
  assertThrows(() => openTelemetryClient({ meter: {} as never }), TypeError, sentence("provider.getMeter(name)"));
});
