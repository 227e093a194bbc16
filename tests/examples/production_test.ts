// The example of a production server: tenants, scopes, roles, limits, tasks, health checks and metrics, in both eras.
// Processes on both runtimes also serve the example.
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { mkdtemp, rm } from "node:fs/promises";
import config from "../../deno.json" with { type: "json" };
import { tmpdir } from "node:os";
import { connect } from "../../src/client/client.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { type Connection, connectTest, McpError } from "../../src/testing/testing.ts";
import { textOf, until } from "../support/behaviour.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { withEnvironment } from "../support/environment.ts";
import { TestIssuer } from "../support/issuer.ts";
import { targets } from "../support/import_map.ts";
import { startCollector } from "../observe/collector.ts";
import { findFreePort, root, run, start } from "../support/processes.ts";
import { runtimes } from "../support/runtimes.ts";

const issuer = await TestIssuer.start();
const printed: string[] = [];
const { log, error } = console;
Object.assign(console, { log: (line: string) => printed.push(line), error: (line: string) => printed.push(line) });
const folder = await mkdtemp(`${tmpdir()}/mcp-production-`);
const origin = "https://tickets.example.com";
const secrets = ["a-secret-of-at-least-thirty-two-characters", "the-secret-before-the-rotation-of-secrets"];
const metricsToken = "a token of the scraper";
const variables = {
  PUBLIC_URL: origin,
  ISSUER: issuer.name,
  MCP_SECRET: secrets.join(" "),
  METRICS_TOKEN: metricsToken,
  DATA: folder,
};
const { default: server } = await withEnvironment(variables, () => import("../../examples/production/server.ts"));

interface Person {
  readonly tenant?: string;
  readonly sub?: string;
  readonly scope?: string;
  /** The caller's roles for the tenant. */
  readonly roles?: readonly string[];
  /** Other values in the claim `roles`. */
  readonly others?: readonly string[];
}

const toPath = (tenant: string) => `/tenants/${tenant}/mcp`;
const toToken = (person: Person = {}, at = origin) => {
  const { tenant = "acme", scope = "tickets:read tickets:write", roles = ["member"], others = [], sub } = person;
  const all = [...roles.map((role) => `${tenant}:${role}`), ...others];
  return issuer.sign({ claims: { aud: at + toPath(tenant), scope, roles: all, ...sub === undefined ? {} : { sub } } });
};
const toHeaders = async (person?: Person, at?: string) => ({ authorization: `Bearer ${await toToken(person, at)}` });

/** Returns the HTTP status of a refusal. Only a legacy client sends a request when it connects. */
async function statusOf(open: () => Promise<Connection>): Promise<unknown> {
  const list = async () => {
    await using client = await open();
    return await client.listTools();
  };
  return (await assertRejects(list, McpError)).status;
}

for (const era of ["modern", "legacy"] as const) {
  const open = async (person: Person = {}, tenant = person.tenant ?? "acme") =>
    await connectTest(server, {
      era,
      transport: "http",
      path: toPath(tenant),
      headers: { host: "tickets.example.com", ...await toHeaders(person) },
    });

  Deno.test(`production: each tenant has its own tickets, and accepts only its own tokens (${era})`, async () => {
    await using acme = await open({ sub: `ada-${era}` });
    const { content: [, link] } = await acme.callTool("open_ticket", { title: `Printer on fire (${era})` });
    const { uri } = link as { readonly uri: string };
    assertStringIncludes(JSON.stringify(await acme.readResource(uri)), "Printer on fire");
    assertStringIncludes(JSON.stringify(await acme.callTool("list_tickets")), `Printer on fire (${era})`);
    await using globex = await open({ tenant: "globex" });
    assertEquals((await globex.callTool("list_tickets")).structuredContent, { tickets: [] });
    await assertRejects(() => globex.readResource(uri), McpError);
    assertEquals(await statusOf(() => open({ tenant: "acme" }, "globex")), 401);
  });

  Deno.test(`production: tools require scopes, and roles decide which tools are shown (${era})`, async () => {
    const names = async (person: Person) => {
      await using client = await open(person);
      return (await client.listTools()).map(({ name }) => name).sort();
    };
    assertEquals(await names({}), ["list_tickets", "open_ticket"]);
    assertEquals(await names({ roles: ["agent"] }), ["close_ticket", "list_tickets", "open_ticket"]);
    assertEquals(await names({ roles: ["manager"] }), ["list_tickets", "open_ticket", "report"]);
    await using reader = await open({ scope: "tickets:read" });
    const error = await assertRejects(() => reader.callTool("open_ticket", { title: "Not allowed" }), McpError);
    assertEquals([error.status, error.code], [403, -31403]);
    await using stranger = await open({ scope: "profile", roles: ["manager"], sub: `stranger-${era}` });
    for (const name of ["list_tickets", "report"]) {
      assertEquals((await assertRejects(() => stranger.callTool(name), McpError)).status, 403, name);
    }
    assertEquals((await assertRejects(() => stranger.readResource("ticket://1"), McpError)).status, 403);
    await using agent = await open({ roles: ["agent"], sub: `agent-${era}` });
    const { content: [, link] } = await agent.callTool("open_ticket", { title: "Close me" });
    const id = Number(String((link as { readonly uri: string }).uri).split("/").at(-1));
    assertEquals(textOf(await agent.callTool("close_ticket", { id })), `Closed ticket ${id}.`);
    assertEquals(textOf(await agent.callTool("close_ticket", { id })), "The ticket is already closed.");
    assertEquals((await agent.callTool("close_ticket", { id: 1e9 })).isError, true);
  });

  Deno.test(`production: only members of a tenant are admitted, and a role counts only for its tenant (${era})`, async () => {
    const others = ["offline_access", "globex:manager", "acme-2:manager"];
    await using member = await open({ others, sub: `member-${era}` });
    assertEquals((await member.listTools()).map(({ name }) => name).sort(), ["list_tickets", "open_ticket"]);
    for (const others of [[], ["offline_access"], ["globex:manager"], ["acme"], ["acme-2:manager"]]) {
      assertEquals(await statusOf(() => open({ roles: [], others })), 403, `${others}`);
    }
  });

  Deno.test(`production: one client can open at most ten tickets a minute, and other clients are not affected (${era})`, async () => {
    await using client = await open({ sub: `loop-${era}`, tenant: "loops" });
    for (let at = 0; at < 10; at++) await client.callTool("open_ticket", { title: `Ticket ${at}` });
    const error = await assertRejects(() => client.callTool("open_ticket", { title: "Too many" }), McpError);
    assertEquals(error.code, -31429);
    await using other = await open({ sub: `other-${era}`, tenant: "loops" });
    await other.callTool("open_ticket", { title: "Another" });
  });
}

Deno.test("production: a report is a task for clients that support tasks", async () => {
  const headers = { host: "tickets.example.com", ...await toHeaders({ roles: ["manager"], tenant: "reports" }) };
  const options = { transport: "http", path: toPath("reports"), headers, extensions: [taskClient()] } as const;
  await using client = await connectTest(server, options);
  assertEquals(textOf(await client.callTool("report")), "0 open, 0 closed");
  const { resultType } = await client.request("tools/call", { name: "report", arguments: {} }, { finish: false });
  assertEquals(resultType, "task");
});

Deno.test("production: health checks need no token, metrics need their own token, and calls without a token are refused", async () => {
  const get = async (path: string, headers: HeadersInit = {}) => {
    const response = await server.fetch(new Request(origin + path, { headers }));
    return [response.status, await response.text()] as const;
  };
  assertEquals([await get("/health"), await get("/ready")], [[200, "{}"], [200, "{}"]]);
  assertEquals((await get("/metrics"))[0], 401);
  const [status, text] = await get("/metrics", { authorization: `Bearer ${metricsToken}` });
  assertEquals(status, 200);
  assertMatch(text, /mcp_server_operation_duration_seconds_count\{.*open_ticket/);
  assertEquals((await get(toPath("acme")))[0], 401);
  assertEquals((await get(toPath("ACME")))[0], 404);
});

/** The server has printed these lines about the calls of the other tests. */
Deno.test("production: logs and the audit log contain the caller and the tool, but no token", async () => {
  const token = await toToken({ sub: "eve", tenant: "audits" });
  const headers = { host: "tickets.example.com", authorization: `Bearer ${token}` };
  await using client = await connectTest(server, { transport: "http", path: toPath("audits"), headers });
  await client.callTool("open_ticket", { title: "A secret title" });
  const audits = printed.filter((line) => line.includes('"phase"') && line.includes("A secret title"));
  assertEquals(audits.map((line) => JSON.parse(line).principal), [`oauth:["${issuer.name}","eve"]`]);
  const logs = printed.filter((line) => line.includes('"event":"call"') && line.includes("open_ticket"));
  assert(logs.length > 0);
  assertEquals(printed.filter((line) => line.includes(token)), []);
  assertEquals(logs.filter((line) => line.includes("A secret title")), []);
});

Deno.test("production: the server closes, and its files are deleted", async () => {
  await server.close();
  Object.assign(console, { log, error });
  await rm(folder, { recursive: true });
});

/** Copies the example into an empty folder with its own configuration, as users do. */
async function copyExample(cwd: string): Promise<void> {
  for await (const { name } of Deno.readDir(`${root}examples/production`)) {
    await Deno.copyFile(`${root}examples/production/${name}`, `${cwd}/${name}`);
  }
}

/** Returns the imports that `deno add` would write, with this project's files as targets. */
function toImports(): Record<string, string> {
  const own = [...targets].filter(([name]) => name.startsWith("@x/mcp"));
  const { zod, jose, oauth4webapi, "@opentelemetry/api": api } = config.imports;
  return { ...Object.fromEntries(own), zod, jose, oauth4webapi, "@opentelemetry/api": api };
}

const isHealthy = (port: number) => async () => {
  const response = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
  await response?.body?.cancel();
  return response?.status === 200;
};

for (const { name: runtime, file: words } of runtimes) {
  testProcesses(`production: ${runtime} serves the example, and stops on SIGTERM`, async () => {
    await using issuer = await TestIssuer.start();
    await withFiles({}, async (data) => {
      const port = findFreePort();
      const origin = `http://127.0.0.1:${port}`;
      const env = { ...variables, PUBLIC_URL: origin, ISSUER: issuer.name, DATA: data, PORT: `${port}` };
      await using running = await start([...words, `${root}examples/production/main.ts`], { env, timeoutMs: 60_000 });
      await until(isHealthy(port), "the server listens");
      const token = await issuer.sign({
        claims: { aud: origin + toPath("acme"), scope: "tickets:read tickets:write", roles: ["acme:member"] },
      });
      const headers = { authorization: `Bearer ${token}` };
      for (const era of ["modern", "legacy"] as const) {
        await using client = await connect(origin + toPath("acme"), { era, headers });
        await client.callTool("open_ticket", { title: `Ticket of ${era}` });
        assertStringIncludes(JSON.stringify(await client.callTool("list_tickets")), `Ticket of ${era}`);
      }
      running.kill("SIGTERM");
      const { code, stderr } = await running.finished;
      assertEquals(code, 0, stderr);
    });
  });
}

testProcesses("production: the program does not start if its database cannot be opened", async () => {
  await withFiles({ "tickets.db/file": "" }, async (data) => {
    const env = { ...variables, DATA: data, PORT: `${findFreePort()}` };
    const { code, stdout, stderr } = await run(["deno", "run", "-A", `${root}examples/production/main.ts`], { env });
    assertEquals([code, stdout.includes("Serving")], [1, false]);
    assertStringIncludes(stderr, "unable to open database file");
  });
});

testProcesses(
  "production: the Dockerfile's commands run in an empty folder, and a trace reaches the collector",
  async () => {
    await using issuer = await TestIssuer.start();
    await using collector = startCollector();
    const lines = (await Deno.readTextFile(`${root}examples/production/Dockerfile`)).trim().split("\n");
    const read = (word: string) =>
      lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
    const [health] = read("HEALTHCHECK").map((line) => JSON.parse(line.replace("CMD ", "")));
    const [command] = read("CMD").map((line) => JSON.parse(line));
    await withFiles({}, async (cwd) => {
      await copyExample(cwd);
      await Deno.writeTextFile(`${cwd}/deno.json`, JSON.stringify({ imports: toImports() }));
      const home = { cwd, env: { DENO_DIR: `${cwd}/cache` }, timeoutMs: 120_000 };
      // A developer runs these steps before building the image.
      assertEquals((await run(["deno", "install", "--entrypoint", "main.ts"], home)).code, 0);
      for (const step of read("RUN")) {
        const { code, stderr } = await run(["sh", "-c", step], home);
        assertEquals(code, 0, `${step}: ${stderr}`);
      }
      const port = findFreePort();
      const origin = `http://127.0.0.1:${port}`;
      const { DATA: _, ...rest } = variables;
      const env = {
        ...home.env,
        ...rest,
        PUBLIC_URL: origin,
        ISSUER: issuer.name,
        PORT: `${port}`,
        OTEL_DENO: "true",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
      };
      await using running = await start(["deno", ...command], { ...home, env });
      await until(isHealthy(port), "the server listens").catch(async (error) => {
        await running[Symbol.asyncDispose]();
        throw new Error((await running.finished).stderr, { cause: error });
      });
      const [program, ...args] = health.map((word: string) => word.replace("8000", `${port}`));
      assertEquals((await run([program, ...args], home)).code, 0);
      const token = await issuer.sign({
        claims: { aud: origin + toPath("acme"), scope: "tickets:read", roles: ["acme:member"] },
      });
      await using client = await connect(origin + toPath("acme"), { headers: { authorization: `Bearer ${token}` } });
      await client.callTool("list_tickets");
      running.kill("SIGTERM");
      assertEquals((await running.finished).code, 0);
      assert((await Deno.stat(`${cwd}/data/tickets.db`)).isFile);
      assert(collector.spans.some(({ name }) => name === "tools/call list_tickets"), JSON.stringify(collector.spans));
    });
  },
);

addEventListener("unload", () => void issuer[Symbol.asyncDispose]());
