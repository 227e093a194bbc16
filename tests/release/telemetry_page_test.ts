// The programs in telemetry.md send their spans to a collector. On SIGTERM, they also send the last spans.
import { assertEquals } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { connect } from "../../src/client/client.ts";
import { startCollector } from "../observe/collector.ts";
import { until } from "../support/behaviour.ts";
import { testProcesses, withFiles } from "../support/command_line.ts";
import { targets } from "../support/import_map.ts";
import { findFreePort, start } from "../support/processes.ts";
import { readPages, writeFiles } from "./pages.ts";

const isOpen = (url: string) => async () => {
  const response = await fetch(url).catch(() => undefined);
  await response?.body?.cancel();
  return response !== undefined;
};

const npm = Object.entries(config.imports).filter(([, target]) => target.startsWith("npm:@opentelemetry/"));
const own = [...targets].filter(([name]) => name.startsWith("@x/mcp"));
const imports = { ...Object.fromEntries(own), ...Object.fromEntries(npm) };

for (
  const { name, words, env } of [
    { name: "the SDK", words: ["main.ts"], env: {} },
    {
      name: "OTEL_DENO",
      words: ["served.ts"],
      env: { OTEL_DENO: "true", OTEL_SERVICE_NAME: "calc", OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" },
    },
  ]
) {
  testProcesses(
    `telemetry.md: a span that ends just before SIGTERM reaches the collector with the service's name, with ${name}`,
    async () => {
      await using collector = startCollector();
      await withFiles({ "deno.json": { imports } }, async (cwd) => {
        const page = (await readPages()).find(({ path }) => path === "docs/guides/telemetry.md");
        if (!page) throw new Error("the page does not exist");
        await writeFiles(page, cwd);
        const main = await Deno.readTextFile(`${cwd}/main.ts`);
        await Deno.writeTextFile(
          `${cwd}/served.ts`,
          main.split("\n").filter((line) => !/shutdown/.test(line)).join("\n"),
        );
        const port = findFreePort();
        const all = { ...env, PORT: `${port}`, OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin };
        await using running = await start(["deno", "run", "-A", ...words], { cwd, env: all });
        const url = `http://127.0.0.1:${port}/mcp`;
        await until(isOpen(url), "the program listens");
        const client = await connect(url);
        await client.callTool("ping");
        await client.close();
        running.kill("SIGTERM");
        const { code, stderr } = await running.finished;
        assertEquals(code, 0, stderr);
        const calls = collector.spans.filter(({ name }) => name === "tools/call ping");
        assertEquals(calls.map(({ service }) => service), ["calc"]);
      });
    },
  );
}
