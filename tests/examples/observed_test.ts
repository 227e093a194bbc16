// The example of an observed server: metrics, health check, log and audit log for one call.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { connectTest } from "../../src/testing/testing.ts";
import { withEnvironment } from "../support/environment.ts";

const token = "scrape-5b1e8c7d2f60";
const { default: server, kept } = await withEnvironment(
  { METRICS_TOKEN: token },
  () => import("../../examples/observed.ts"),
);

for (const era of ["modern", "legacy"] as const) {
  Deno.test(`observed: a call is counted, logged and audited, without account numbers (${era})`, async () => {
    const lines: string[] = [];
    const { error } = console;
    console.error = (line) => lines.push(line);
    kept.length = 0;
    try {
      await using client = await connectTest(server, { era, transport: "http" });
      await client.callTool("transfer", { from: "AT-9041172641", to: "CH-7733582633", cents: 250 });
    } finally {
      console.error = error;
    }
    const call = lines.map((line) => JSON.parse(line)).find(({ name }) => name === "transfer");
    assertEquals([call.event, call.outcome], ["call", "result"]);
    const [intent, outcome] = kept;
    assert(intent.phase === "intent" && outcome.phase === "outcome");
    assertEquals([intent.arguments, outcome.outcome], [{ cents: 250, from: "…41", to: "…33" }, "result"]);
    const ask = (path: string, headers = {}) => server.fetch(new Request(`http://localhost${path}`, { headers }));
    const scraped = await ask("/metrics", { authorization: `Bearer ${token}` });
    const text = await scraped.text();
    assertStringIncludes(text, 'gen_ai_tool_name="transfer"');
    // The numbers are long, because the output contains random ids and times.
    assert(!/90411726|77335826/.test(lines.join() + text + JSON.stringify(kept)));
    const refused = await ask("/metrics");
    assertEquals([refused.status, await refused.text()], [401, ""]);
    const ready = await ask("/ready");
    assertEquals([ready.status, await ready.text()], [200, "{}"]);
  });
}
