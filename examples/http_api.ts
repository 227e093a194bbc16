// A tool that calls an HTTP API. The tool stays below the API's rate limit, and retries failed requests. Set
// WEATHER_API to the URL of the API, and run `mcp examples/http_api.ts`.
import { createServer, tool, ToolError } from "@x/mcp";
import { quota } from "@x/mcp/layers";
import process from "node:process";
import { z } from "zod";

/** Number of attempts, and limits on the delays between attempts. */
interface Retries {
  readonly attempts: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

/** Creates the server. `api` is the URL of the API. */
export function createWeatherServer(api: string, retries: Partial<Retries> = {}) {
  const { attempts = 4, firstDelayMs = 250, maxDelayMs = 10_000 } = retries;

  /** Sends a request, and retries after network errors and after the statuses 429, 502, 503 and 504. */
  async function request(url: URL, signal: AbortSignal): Promise<Response> {
    for (let attempt = 1;; attempt++) {
      const response = await fetch(url, { signal }).catch((error) => {
        if (signal.aborted || attempt === attempts) throw error;
      });
      if (response && ![429, 502, 503, 504].includes(response.status)) return response;
      await response?.body?.cancel();
      if (attempt === attempts) {
        throw new ToolError(`The weather service is busy (${response?.status}); try again later`);
      }
      const delayMs = readRetryAfter(response) ?? jitter(Math.min(maxDelayMs, firstDelayMs * 2 ** (attempt - 1)));
      // Let the model wait instead, because this call cannot wait so long.
      if (delayMs > maxDelayMs) {
        throw new ToolError(`The weather service is busy; try again in ${Math.ceil(delayMs / 1000)} seconds`);
      }
      await wait(delayMs, signal);
    }
  }

  const forecast = tool({
    name: "forecast",
    title: "Weather forecast",
    description: "Returns the weather of a city",
    annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
    input: z.object({ city: z.string() }),
    // The rate applies per client, so that no client uses up the API's rate limit. At most two calls run concurrently.
    use: [quota({ timeoutMs: 30_000, concurrency: 2, rate: { calls: 20, perMs: 60_000 } })],
    async run({ city }, { signal }) {
      const url = new URL("forecast", api);
      url.searchParams.set("city", city);
      const response = await request(url, signal);
      if (response.status === 404) throw new ToolError(`There is no city ${city}`);
      return response;
    },
  });
  return createServer({ name: "weather", version: "1.0.0", handlers: [forecast] });
}

/** Returns the delay in milliseconds from the header `Retry-After`, which contains seconds or a date. */
function readRetryAfter(response: Response | undefined | void): number | undefined {
  const value = response?.headers.get("retry-after");
  if (!value) return;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

// Returns a random part of a delay, so that requests that failed at the same time are not retried at the same time.
function jitter(ms: number): number {
  return ms * (0.5 + Math.random() / 2);
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
}

export default createWeatherServer(process.env.WEATHER_API ?? "http://localhost:8000/");
