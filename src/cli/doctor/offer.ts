/**
 * What a server offers, and how long it takes to answer.
 *
 * @module
 */
import type { Client } from "../../client/calls.ts";
import { connect } from "../../client/connect.ts";
import { startTimer } from "../../client/pause.ts";
import { isObject } from "../../protocol/jsonrpc.ts";
import { checkListing, type Listing, toTokens } from "../listing_check.ts";
import { listAll, toCount } from "../listing.ts";
import type { Dialect } from "./dialect.ts";
import { exchange, type Place } from "./exchange.ts";
import { toMs } from "./revisions.ts";
import type { Report, Tell } from "./report.ts";

/** Tokens that a list of tools may cost. */
const MOST_TOKENS = 20_000;
/** How many times as long as one request may take, all pages of all lists may take. */
const MOST_TIMES = 4;
const ROUNDS = 5;
const SLOW_MS = 1000;

/** Lists everything with this project's own client. */
export async function examineOffer(place: Place, { look }: Report): Promise<void> {
  await look("offer", (tell) => listOffer(place, tell));
}

async function listOffer({ url, fetch, headers, timeoutMs, signal }: Place, tell: Tell): Promise<void> {
  const late = new AbortController();
  const mostMs = timeoutMs * MOST_TIMES;
  const stopTimer = startTimer(mostMs, () => late.abort(new Error(`it takes longer than ${mostMs / 1000} s`)));
  const ended = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  let client: Client | undefined;
  try {
    client = await connect(url, {
      fetch,
      headers,
      timeoutMs,
      signal: ended,
      onWarning: (text) => tell.problem(text, "mend the schema of the tool: clients leave it out"),
    });
    const { listing, failures } = await listAll(client, { signal: ended });
    for (const { place, state } of failures) {
      tell.problem(`${place}: ${state}`, "answer the list as the protocol has it");
    }
    tellOffer(leaveOutUnusable(listing, tell), tell);
  } catch (error) {
    const state = error instanceof Error ? error.message : String(error);
    const what = client ? "its lists cannot be read to their end" : "a client cannot connect";
    tell.problem(`${what}: ${state}`, "mend what is said above, and look again");
  } finally {
    stopTimer();
    await client?.close().catch(() => {});
  }
}

function tellOffer(listing: Listing, tell: Tell): void {
  const { tools, resources, templates, prompts } = listing;
  const tokens = tools.reduce((sum, tool) => sum + toTokens(tool), 0);
  const cost = tools.length ? `, of which the tools take about ${toCount(tokens, "token")} of a model's context` : "";
  const counts = [
    toCount(tools.length, "tool"),
    toCount(resources.length, "resource"),
    toCount(templates.length, "template"),
    toCount(prompts.length, "prompt"),
  ];
  tell.ok(`it lists ${counts.join(", ")}${cost}`);
  for (const { level, place, state } of checkListing(listing, { maxTokens: MOST_TOKENS, isTrusted: false })) {
    // The last part of what is found says what would be right.
    const isBare = state.endsWith("has no description");
    const [what, remedy = isBare ? "say what it is for" : "mend it in the server's code"] = state.split("; ");
    tell[level === "error" ? "problem" : "note"](`${place}: ${what}`, remedy);
  }
}

// What is not even of the right kind keeps the official clients from reading the whole list.
function leaveOutUnusable({ tools, resources, templates, prompts }: Listing, tell: Tell): Listing {
  const keep = <T extends object>(items: readonly T[], what: string, check: (item: T) => string | undefined) => {
    const names = new Set<unknown>();
    return items.filter((item) => {
      const name = "name" in item ? item.name : undefined;
      const isTwice = what !== "resource" && what !== "template" && names.has(name);
      const state = typeof name !== "string" ? "its name is no text" : isTwice ? "it is listed twice" : check(item);
      names.add(name);
      if (state === undefined) return true;
      tell.problem(
        `${what} ${JSON.stringify(name) ?? "without a name"}: ${state}`,
        "mend it: clients refuse it, or the whole list",
      );
      return false;
    });
  };
  const textOf = (item: object, key: string) =>
    key in item && typeof Object.entries(item).find(([name]) => name === key)?.[1] === "string";
  return {
    tools: keep(tools, "tool", ({ inputSchema, description }) => {
      if (!isObject(inputSchema)) return "it has no inputSchema";
      if (inputSchema.type !== "object") {
        return `the type of its inputSchema is ${JSON.stringify(inputSchema.type) ?? "missing"}, not "object"`;
      }
      return description === undefined || typeof description === "string" ? undefined : "its description is no text";
    }),
    resources: keep(resources, "resource", (each) => textOf(each, "uri") ? undefined : "it has no uri"),
    templates: keep(templates, "template", (each) => textOf(each, "uriTemplate") ? undefined : "it has no uriTemplate"),
    prompts: keep(
      prompts,
      "prompt",
      ({ arguments: args }) =>
        args === undefined || (Array.isArray(args) && args.every(isObject)) ? undefined : "its arguments are no list",
    ),
  };
}

/** Measures how long the server takes for a question that it can answer at once. */
export async function examineLatency(place: Place, { write, idle }: Dialect, { look }: Report): Promise<void> {
  await look("latency", async (tell) => {
    const times: number[] = [];
    for (let i = 0; i < ROUNDS; i++) times.push((await exchange(place, write(idle))).ms);
    const middle = times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)];
    const what = `${idle} takes ${toMs(middle)}, and ${toMs(times[ROUNDS - 1])} at most`;
    middle < SLOW_MS
      ? tell.ok(what)
      : tell.note(what, "look at what is slow: the way there, or the start of the server");
  });
}
