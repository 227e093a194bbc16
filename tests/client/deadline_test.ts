// Timeouts and signals end a request, whatever the request is waiting for.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { z } from "zod";
import { clientExtension, connect, type ConnectOptions, type Progress } from "../../src/client/client.ts";
import { started, textOf, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { discovered, fakeHttp, ok, url } from "./fakes.ts";
import { fakeClock } from "../../src/testing/testing.ts";
import { withTimersOn } from "../support/timers.ts";

const asks = { resultType: "input_required", inputRequests: { name: { method: "roots/list" } }, requestState: "s" };
const ticket = { resultType: "ticket", ticketId: "1" };
const never = new Promise<never>(() => {});

/** Creates a server that responds to tool calls with the given results in order, and repeats the last result. */
function responding(...results: readonly object[]) {
  let calls = 0;
  return fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    return heard.method === "tools/call" ? ok(heard, results[Math.min(calls++, results.length - 1)]) : ok(heard);
  });
}

function ticketsThat(finish: Parameters<typeof clientExtension<{ ticket: z.ZodObject }>>[0]["results"]) {
  return clientExtension({ id: "com.example/tickets", results: finish });
}

const schema = z.looseObject({ ticketId: z.string() });

/** What a request waits for, with the server results and client options that cause the wait. */
const waits: Readonly<Record<string, { results: readonly object[]; options: ConnectOptions }>> = {
  "an extension that never finishes it": {
    results: [ticket],
    options: { extensions: [ticketsThat({ ticket: { schema, finish: () => never } })] },
  },
  "a user who never answers": { results: [asks], options: { roots: () => never } },
  "a server that asks repeatedly": { results: [asks], options: { roots: [] } },
  "a middleware function that never returns": {
    results: [],
    options: { use: [(request, next) => request.method === "tools/call" ? never : next()] },
  },
  "a token": { results: [], options: { auth: slowAuth() } },
};

function slowAuth(): NonNullable<ConnectOptions["auth"]> {
  let isFirst = true;
  return {
    token() {
      if (!isFirst) return never;
      isFirst = false;
      return undefined;
    },
  };
}

for (const [what, { results, options }] of Object.entries(waits)) {
  Deno.test(`a request times out while it waits for ${what}`, async () => {
    // Delay the responses of the server that asks repeatedly, so that the timeout expires before the limit on rounds.
    const server = responding(...results);
    const fetch = async (request: Request) => {
      const response = await server.fetch(request);
      // Fixed wait: a server that takes a fixed time for each response.
      if (what.includes("repeatedly")) await new Promise((resolve) => setTimeout(resolve, 10));
      return response;
    };
    const auth = options.auth && slowAuth();
    await using client = await connect(url, { ...options, ...auth && { auth }, fetch });
    const late = await assertRejects(() => client.callTool("slow", {}, { timeoutMs: 60 }), DOMException);
    assertEquals([late.name, late.message], ["TimeoutError", sentence("tools/call", 60)]);
    const stop = new AbortController();
    const calling = client.callTool("slow", {}, { signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")));
    await assertRejects(() => calling, Error, "enough");
  });
}

Deno.test("an extension that finishes a request receives the request's signal, which also ends the extension's own requests", async () => {
  const state = { isRunning: false, isAborted: false, nested: undefined as unknown };
  const extension = ticketsThat({
    ticket: {
      schema,
      async finish(_result, { signal, request }) {
        state.isRunning = true;
        signal.addEventListener("abort", () => state.isAborted = true);
        state.nested = await request("tickets/redeem").catch((error) => error);
        return {};
      },
    },
  });
  const server = responding(ticket);
  const fetch = (request: Request) => {
    const isNested = request.headers.get("mcp-method") === "tickets/redeem";
    return isNested ? never : server.fetch(request);
  };
  await using client = await connect(url, { fetch, extensions: [extension] });
  const clock = fakeClock();
  const timeoutMs = 12_345;
  await withTimersOn(clock, timeoutMs, async () => {
    const late = started(client.callTool("slow", {}, { timeoutMs }));
    await until(() => state.isRunning, "the extension finishes the request");
    await clock.advance(timeoutMs);
    await assertRejects(() => late, DOMException, "tools/call");
  });
  assert(state.isAborted);
  await until(() => state.nested !== undefined, "the end of the nested request");
  assertEquals(Object(state.nested).name, "TimeoutError");
});

Deno.test("an extension that finishes a request receives the caller's onProgress function", async () => {
  const extension = ticketsThat({
    ticket: {
      schema,
      finish(_result, { onProgress }) {
        onProgress?.({ progress: 1, total: 2 });
        return { content: [{ type: "text", text: String(typeof onProgress) }] };
      },
    },
  });
  await using client = await connect(url, { fetch: responding(ticket).fetch, extensions: [extension] });
  const heard: Progress[] = [];
  const result = await client.callTool("slow", {}, { onProgress: (progress) => void heard.push(progress) });
  assertEquals([textOf(result), heard], ["function", [{ progress: 1, total: 2 }]]);
  assertEquals(textOf(await client.callTool("slow")), "undefined");
});
