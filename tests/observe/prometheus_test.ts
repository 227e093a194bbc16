// The metrics endpoint: the histograms of the conventions, and labels whose values clients cannot choose.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { McpError, prompt, resource, tool, ToolError } from "../../mod.ts";
import { prometheus } from "../../src/observe/observe.ts";
import { behaviour } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { throwing } from "../support/throwing.ts";

const TOKEN = "scrape-7d41f2a09c3be856";

const handlers = [
  tool({ name: "fine", input: { type: "object" }, run: () => "fine" }),
  tool({ name: "wrong", run: throwing(new ToolError("wrong")) }),
  tool({ name: "closed", run: throwing(new McpError(-31001, "closed")) }),
  prompt({ name: "greet", run: () => "Hi" }),
  resource({ uri: "note://{id}", name: "note", read: ({ id }) => id }),
];

const quoted = prompt({ name: 'a "b"\\c', run: () => "Hi" });

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Parses the Prometheus text format. Throws for a line that a scraper would reject. */
function readSamples(text: string): readonly Sample[] {
  return text.split("\n").filter((line) => line && !line.startsWith("# ")).map((line) => {
    const [, name, inner, value] = /^([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} ([\d.e+-]+)$/.exec(line) ??
      [];
    if (!name) throw new Error(`this line is not a sample: ${line}`);
    const labels = [...inner.matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key, value]);
    return { name, labels: Object.fromEntries(labels), value: Number(value) };
  });
}

behaviour("calls are counted by method, handler and outcome", async (connect, { era, version, transport }) => {
  const metrics = prometheus({ token: TOKEN });
  const { client } = await connect({ handlers, observer: metrics });
  for (const name of ["fine", "fine", "wrong", "closed"]) await client.callTool(name, {}).catch(() => {});
  await client.getPrompt("greet");
  await client.readResource("note://secret");
  const samples = readSamples(metrics.text());
  const counts = samples.filter(({ name }) => name === "mcp_server_operation_duration_seconds_count");
  const network = transport === "http" || transport === "memory" ? { network_transport: "tcp" } : {};
  const find = (wanted: Readonly<Record<string, string>>) =>
    counts.filter(({ labels }) => Object.entries(wanted).every(([name, value]) => labels[name] === value))
      .map(({ value }) => value);
  const call = { mcp_method_name: "tools/call", gen_ai_operation_name: "execute_tool", mcp_protocol_version: version };
  assertEquals(find({ ...call, gen_ai_tool_name: "fine" }), [2]);
  assertEquals(find({ ...call, gen_ai_tool_name: "wrong", error_type: "tool_error" }), [1]);
  const code = { error_type: "-31001", rpc_response_status_code: "-31001" };
  assertEquals(find({ ...call, gen_ai_tool_name: "closed", ...code }), [1]);
  assertEquals(find({ mcp_method_name: "prompts/get", gen_ai_prompt_name: "greet" }), [1]);
  assertEquals(find({ mcp_method_name: "resources/read" }), [1]);
  assertEquals(find({ mcp_method_name: "initialize" }), era === "legacy" ? [1] : []);
  assertEquals(find({ network_transport: "tcp" }).length > 0, "network_transport" in network);
  assert(!metrics.text().includes("secret"));
  const buckets = samples.filter(({ name, labels }) =>
    name === "mcp_server_operation_duration_seconds_bucket" && labels.gen_ai_tool_name === "fine"
  );
  assertEquals(
    buckets.map(({ labels }) => labels.le),
    "0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 30 60 120 300 +Inf".split(" "),
  );
  assertEquals(buckets.at(-1)?.value, 2);
});

behaviour("a client cannot add labels", async (connect) => {
  const metrics = prometheus({ token: TOKEN });
  const { client } = await connect({ handlers, observer: metrics });
  await client.callTool("fine", {});
  const lines = metrics.text().split("\n").length;
  for (let at = 0; at < 20; at++) {
    await assertRejects(() => client.callTool(`gone-${at}`));
    await assertRejects(() => client.getPrompt(`gone-${at}`));
    await assertRejects(() => client.request(`gone/${at}`, {}));
    await assertRejects(() => client.readResource(`gone://${at}`));
  }
  assert(!metrics.text().includes("gone"));
  assert(metrics.text().split("\n").length < lines + 40);
});

behaviour("without a token, the labels contain no names of handlers", async (connect) => {
  const metrics = prometheus();
  const { client } = await connect({ handlers, observer: metrics });
  await client.callTool("fine", {});
  assert(!/fine/.test(metrics.text()));
  assert(metrics.text().includes('gen_ai_tool_name="other"'));
  const named = prometheus({ handlers: true });
  const { client: other } = await connect({ handlers: [quoted], observer: named });
  await other.getPrompt(quoted.name);
  assert(named.text().includes('gen_ai_prompt_name="a \\"b\\"\\\\c"'), named.text());
  readSamples(named.text());
});

behaviour("the number of values of a label is limited", async (connect) => {
  const metrics = prometheus({ token: TOKEN });
  const { client, server } = await connect({ handlers: [], observer: metrics });
  for (let at = 0; at < 520; at++) {
    const passing = tool({ name: `t${at}`, run: () => "" });
    server.handlers.add(passing);
    await client.callTool(`t${at}`);
    server.handlers.remove(passing);
  }
  const names = new Set(readSamples(metrics.text()).map(({ labels }) => labels.gen_ai_tool_name));
  names.delete(undefined as never); // The series for other methods have no tool name.
  assertEquals([names.size, names.has("other")], [501, true]);
}, { transports: ["memory"] });

behaviour("the duration of a session is recorded when the session ends", async (connect) => {
  const metrics = prometheus();
  const { client } = await connect({ handlers, observer: metrics });
  await client.callTool("fine", {});
  assert(!metrics.text().includes("session_duration_seconds_count"));
  await client.close();
  const [count] = readSamples(metrics.text()).filter(({ name }) =>
    name === "mcp_server_session_duration_seconds_count"
  );
  assertEquals([count?.value, count?.labels.mcp_protocol_version], [1, "2025-11-25"]);
}, { eras: ["legacy"], transports: ["http"], perInstance: "observer" });

Deno.test("the endpoint responds only to GET requests with the right token", async () => {
  const metrics = prometheus({ token: TOKEN, path: "/internal/metrics" });
  const ask = (authorization?: string, method = "GET") =>
    metrics.fetch(
      new Request(`http://localhost${metrics.path}`, { method, headers: authorization ? { authorization } : {} }),
    );
  assertEquals([ask().status, ask("Bearer wrong").status, ask(`Bearer ${TOKEN}x`).status], [401, 401, 401]);
  assertEquals(ask(`Basic ${TOKEN}`).status, 401);
  assertEquals(ask(`Bearer ${TOKEN}`, "POST").status, 405);
  const response = ask(`Bearer ${TOKEN}`);
  assertEquals([response.status, response.headers.get("content-type")], [
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  assertEquals(response.headers.get("cache-control"), "no-store");
  assert((await response.text()).startsWith("# HELP mcp_server_operation_duration_seconds "));
  assertEquals(prometheus().fetch(new Request("http://localhost/metrics")).status, 200);
});

Deno.test("a token that is too short, and a path without a slash, are refused", () => {
  assertThrows(() => prometheus({ token: "short" }), TypeError, sentence("token"));
  assertThrows(() => prometheus({ path: "metrics" }), TypeError, sentence('"metrics"', "/metrics"));
});
