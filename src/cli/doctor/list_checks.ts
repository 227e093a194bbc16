/**
 * Checks a server's lists and latency.
 */
import { type Client, connect } from "../../client/client.ts";
import { startTimer } from "../../core/kit/timer.ts";
import type { Directory } from "../directories.ts";
import { checkListing, type Listing, toNumbered, toTokens } from "../listing_check.ts";
import { formatCounts, listAll, toCount } from "../listing.ts";
import { type Endpoint, exchange, type RequestWriter } from "./exchange.ts";
import { formatMs } from "./revision_checks.ts";
import type { Check, Report } from "./report.ts";

/** Number of tokens above which the list of tools gets a note. */
const MAX_TOKENS = 20_000;
/** The timeout for reading all pages of all lists, as a multiple of the timeout of one request. */
const TIMEOUT_FACTOR = 4;
/** Number of requests for measuring the latency. */
const ROUNDS = 5;
const SLOW_MS = 1000;

/** Loads all lists with the client of this library. */
export async function checkLists(
  endpoint: Endpoint,
  { run }: Report,
  directories: readonly Directory[] = [],
): Promise<void> {
  await run("lists", (check) => listAndCheck(endpoint, check, directories));
}

async function listAndCheck(
  { url, fetch, headers, timeoutMs, signal }: Endpoint,
  check: Check,
  directories: readonly Directory[],
): Promise<void> {
  const deadline = new AbortController();
  const totalMs = timeoutMs * TIMEOUT_FACTOR;
  const stopTimer = startTimer(totalMs, () => deadline.abort(new Error(`it takes longer than ${totalMs / 1000} s`)));
  const stopped = signal ? AbortSignal.any([signal, deadline.signal]) : deadline.signal;
  let client: Client | undefined;
  try {
    client = await connect(url, {
      fetch,
      headers,
      timeoutMs,
      signal: stopped,
      onWarning: (text) => check.problem(text, "fix the item; clients ignore the item, or reject the whole list"),
    });
    const { listing, failures } = await listAll(client, { signal: stopped });
    for (const { place, state } of failures) {
      check.problem(`${place}: ${state}`, "respond to the list requests as the protocol requires");
    }
    reportLists(removeRepeated(listing, check), check, directories);
  } catch (error) {
    const state = error instanceof Error ? error.message : String(error);
    const message = client ? "the lists cannot be read completely" : "a client cannot connect";
    check.problem(`${message}: ${state}`, "fix the problems above, and run doctor again");
  } finally {
    stopTimer();
    await client?.close().catch(() => {});
  }
}

function reportLists(listing: Listing, check: Check, directories: readonly Directory[]): void {
  const { tools } = listing;
  const tokens = tools.reduce((sum, tool) => sum + toTokens(tool), 0);
  const cost = tools.length ? `; the tools take about ${toCount(tokens, "token")} of a model's context` : "";
  check.ok(`the server lists ${formatCounts(listing)}${cost}`);
  const options = { maxTokens: MAX_TOKENS, isTrusted: false, directories };
  for (const { level, place, fix, ...finding } of checkListing(listing, options)) {
    const add = level === "error" ? check.problem : check.note;
    add(`${place}: ${toNumbered({ level, ...finding }, directories)}`, fix ?? "fix the problem in the server's code");
  }
}

/** Removes repeated tools and prompts, and reports each of them, because the official clients reject the whole list. */
function removeRepeated({ tools, prompts, ...others }: Listing, check: Check): Listing {
  const keep = <T extends { readonly name: string }>(items: readonly T[], kind: string) => {
    const names = new Set<string>();
    return items.filter(({ name }) => {
      if (!names.has(name)) return names.add(name);
      check.problem(
        `${kind} ${JSON.stringify(name)}: it is listed twice`,
        "fix the item; clients reject the item, or the whole list",
      );
      return false;
    });
  };
  return { ...others, tools: keep(tools, "tool"), prompts: keep(prompts, "prompt") };
}

/** Measures the latency of a request for which the server does almost no work, such as a ping. */
export async function checkLatency(
  endpoint: Endpoint,
  { write, pingMethod }: RequestWriter,
  { run }: Report,
): Promise<void> {
  await run("latency", async (check) => {
    const times: number[] = [];
    for (let i = 0; i < ROUNDS; i++) times.push((await exchange(endpoint, write(pingMethod))).ms);
    const median = times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)];
    const message = `${pingMethod} takes ${formatMs(median)} (median) and at most ${formatMs(times[ROUNDS - 1])}`;
    median < SLOW_MS ? check.ok(message) : check.note(message, "check whether the network or the server is slow");
  });
}
