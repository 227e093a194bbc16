// Recording traffic, and replaying the recorded traffic.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { type Handler, type Observer, tool } from "../../mod.ts";
import { record, type RecordOptions } from "../../src/observe/observe.ts";
import { replayTranscript } from "../../src/testing/testing.ts";
import { behaviour } from "../support/behaviour.ts";
import { leastCost } from "../support/cost.ts";
import { testServer } from "../support/test_server.ts";
import { onDeno } from "../support/on_deno.ts";
import { throwing } from "../support/throwing.ts";
import { patch } from "../support/patch.ts";

const ask = tool({
  name: "buy",
  input: { type: "object" },
  async run(_input, ctx) {
    const { action } = await ctx.elicit("sure", { message: "Buy?", schema: z.object({ yes: z.boolean() }) });
    await ctx.log.warning("low");
    return `bought ${action}`;
  },
});
const hello = tool({ name: "hello", input: { type: "object" }, run: () => "Hello!" });
const broken = tool({ name: "broken", run: throwing(new Error("out of order")) });

function recorder(options: Partial<RecordOptions> = {}): { readonly observer: Observer; readonly lines: string[] } {
  const lines: string[] = [];
  return { observer: record({ write: (line) => lines.push(line), ...options }), lines };
}

behaviour("recorded traffic can be replayed until the server changes", async (connect) => {
  const { observer, lines } = recorder();
  const handlers = [hello, ask, broken];
  const { client, takeFaults } = await connect({ observer, handlers, ttlMs: 0 }, {
    onElicit: () => ({ action: "accept", content: { yes: true } }),
  });
  await client.listTools();
  await client.callTool("hello", {});
  await client.callTool("buy", {});
  await client.callTool("broken");
  await assertRejects(() => client.callTool("gone"));
  takeFaults();
  assert(lines.length >= 10, String(lines.length));
  const text = lines.join("\n");
  const toServer = (...handlers: readonly Handler[]) =>
    testServer({ name: "fixture", handlers, observer: { fault() {} } });
  assertEquals(await replayTranscript(toServer(...handlers), text), lines);
  const changed = tool({ name: "hello", input: { type: "object" }, run: () => "Goodbye!" });
  const replayed = async () => await replayTranscript(toServer(changed, ask, broken), text);
  assertEquals((await replayed()).map((line) => line.replace("Goodbye!", "Hello!")), lines);
  assert(!(await replayed()).join().includes("Hello!"));
});

behaviour(
  "a transcript contains no credentials, no request state and no value that redact removes",
  async (connect, way) => {
    const { observer, lines } = recorder({
      redact: (message) => JSON.parse(JSON.stringify(message).replaceAll("4000-1234", "****")),
    });
    const echo = tool({ name: "echo", input: { type: "object" }, run: (input) => input });
    const { client } = await connect({ observer, handlers: [echo, ask] }, {
      onElicit: () => ({ action: "decline" }),
      headers: { authorization: "Bearer header-5f0c9b2e71" },
    });
    await client.callTool("echo", {
      card: "4000-1234",
      access_token: "first-5f0c9b2e71",
      nested: [{ clientSecret: "second-5f0c9b2e71", apiKeys: ["third-5f0c9b2e71"], password: 5092271 }],
      text: "curl -H 'Authorization: Bearer fourth-5f0c9b2e71'",
      jwt: "eyJhbGciOiJub25lIn0.eyJzdWIiOiJmaWZ0aCJ9.c2lnbmVk",
      jwe: "See eyJlbmMiOiJBMjU2R0NNIn0..aXYtNWYwYzliMmU3MQ.dGV4dC01ZjBjOWIyZTcx.dGFnLTVmMGM5YjJlNzE.",
      url: "https://a.example/?access_token=sixth-5f0c9b2e71&page=2",
      opaque: "https://a.example/?token=eyJzZXZlbnRoIjoxfQ",
      name: "eyJzd29yZA.md",
      maxTokens: 100,
    });
    await client.callTool("buy", {});
    const text = lines.join("\n");
    for (const secret of ["5f0c9b2e71", "4000-1234", "5092271", "eyJzdWIi", "dGV4dC", "dGFn", "eyJzZXZlb"]) {
      assert(!text.includes(secret), secret);
    }
    assert(text.includes('"maxTokens":100') && text.includes("****") && text.includes("eyJzd29yZA.md"));
    assertEquals(text.includes('"requestState":"<state 1>"'), way.era === "modern");
    assert(!/"requestState":"(?!<state)/.test(text));
  },
);

behaviour("if redact throws, the message is left out and the call does not fail", async (connect) => {
  const { observer, lines } = recorder({ redact: throwing(new Error("no")) });
  const errors: unknown[] = [];
  using _patched = patch(console, { error: (text) => errors.push(text) });
  const { client } = await connect({ observer, handlers: [hello] });
  await client.callTool("hello");
  assertEquals([lines, errors.length], [[], 1]);
});

Deno.test("recording a text takes linear time", () => {
  const observer = record({ write() {} });
  for (const unit of ["eyJ-", "eyJa.", "bearer ", "token="]) {
    const read = (characters: number) => {
      const text = JSON.stringify({ jsonrpc: "2.0", method: "x", params: { text: unit.repeat(characters / 8) } });
      return leastCost(() => observer.message?.({ direction: "in", text, transport: "http" }), 3);
    };
    const [short, long] = [read(25_000), read(200_000)];
    assert(long < 50 || long / short < 24, `${unit}: ${short} ms, eight times as long ${long} ms`);
  }
});

behaviour("a transcript discards the names of secrets when their values take much memory", async (connect) => {
  const { observer, lines } = recorder();
  const { client } = await connect({ observer, handlers: [hello] });
  for (let call = 1; call <= 6; call++) await client.callTool("hello", { token: `${call}`.repeat(1_000_000) });
  const names = lines.flatMap((line) => /"token":"([^"]*)"/.exec(line)?.[1] ?? []);
  assertEquals(names, ["<token 1>", "<token 2>", "<token 3>", "<token 4>", "<token 1>", "<token 2>"]);
});

// the heap is measured with a V8 flag
onDeno("a transcript keeps a copy of a secret, and not the message that contained the secret", async () => {
  const program = `
      import { record } from ${JSON.stringify(new URL("../../src/observe/observe.ts", import.meta.url).href)};
      const observer = record({ write() {} });
      for (let i = 0; i < 50; i++) {
        const text = "Bearer secret-" + i + "-5f0c9b2e71 " + "x".repeat(500_000);
        observer.message({ direction: "in", text: JSON.stringify({ jsonrpc: "2.0", method: "x", params: { text } }) });
      }
      gc();
      console.log(Deno.memoryUsage().heapUsed);`;
  const { stdout } = await new Deno.Command("deno", {
    args: ["eval", "--no-check", "--v8-flags=--expose-gc", program],
  }).output();
  const bytes = new TextDecoder().decode(stdout).trim();
  assert(Number(bytes) < 12e6, `${bytes} bytes are held`);
});
