// The example for a rate-limited HTTP API, with an API on this machine.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createWeatherServer } from "../../examples/http_api.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { textOf } from "../support/behaviour.ts";

type Answer = (response: ServerResponse) => void;

const sunny: Answer = (response) => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ weather: "sunny" }));
};
const busy = (status: number, retryAfter?: string): Answer => (response) => {
  response.statusCode = status;
  if (retryAfter !== undefined) response.setHeader("retry-after", retryAfter);
  response.end("busy");
};

/** Calls the tool while the API returns the given responses in order. */
async function forecast(answers: readonly Answer[], options: Parameters<typeof createWeatherServer>[1] = {}) {
  const times: number[] = [];
  const left = [...answers];
  const api = createHttpServer((_request: IncomingMessage, response: ServerResponse) => {
    times.push(performance.now());
    (left.shift() ?? busy(503))(response);
  });
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  const address = api.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const server = createWeatherServer(`http://127.0.0.1:${port}/`, { firstDelayMs: 20, maxDelayMs: 1500, ...options });
  const client = await connectTest(server);
  try {
    const { content, isError } = await client.callTool("forecast", { city: "Bern" });
    return { text: textOf({ content }), isError: isError === true, times };
  } finally {
    await client.close();
    await server.close();
    await new Promise((resolve) => {
      api.close(resolve);
      api.closeAllConnections();
    });
  }
}

const options = { sanitizeOps: false, sanitizeResources: false }; // Runtimes keep the connections of fetch open.

Deno.test("requests to a busy API are retried with increasing delays", options, async () => {
  const { text, times } = await forecast([busy(503), busy(429), sunny]);
  assertStringIncludes(text, "sunny");
  assertEquals(times.length, 3);
  assert(times[1] - times[0] >= 9 && times[2] - times[1] >= 19, `${times}`);
});

Deno.test("the client waits for the time in Retry-After", options, async () => {
  const { text, times } = await forecast([busy(429, "1"), sunny]);
  assertStringIncludes(text, "sunny");
  assert(times[1] - times[0] >= 990, `${times}`);
});

Deno.test("if Retry-After is long, or if the API stays busy, the model gets an error", options, async () => {
  const long = await forecast([busy(429, "120")]);
  assertEquals([long.text, long.isError], ["The weather service is busy; try again in 120 seconds", true]);
  const ever = await forecast([]);
  assertEquals([ever.times.length, ever.isError], [4, true]);
  const missing = await forecast([busy(404)]);
  assertEquals([missing.text, missing.isError], ["There is no city Bern", true]);
});

Deno.test("each client has its own rate limit", options, async () => {
  await using server = createWeatherServer("http://127.0.0.1:9/", { attempts: 1 });
  await using client = await connectTest(server, { principal: { id: "ada" } });
  for (let i = 0; i < 20; i++) await client.callTool("forecast", { city: "Bern" }).catch(() => {});
  await assertRejects(() => client.callTool("forecast", { city: "Bern" }), Error, "handler.rate");
});
