/**
 * Makes plans of calls, finds them again, and compares them. Loaded when a client first calls a tool with plans.
 */
import { toBase64Url } from "../../core/kit/base64.ts";
import { show } from "../../core/known_options.ts";
import { toCanonicalText } from "../../core/protocol/canonical.ts";
import { isToolError, quote, toBusy, ToolError } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import type { Context } from "../call/context.ts";
import { toCall } from "../call/find_call.ts";
import { readGiven } from "../call/given.ts";
import type { Reads } from "../call/handler_call.ts";
import { notePlan, readPlan } from "../call/plans.ts";
import { repeatReads } from "../call/reads.ts";
import type { SharedValues } from "../call/shared_values.ts";
import type { Argument } from "../engine/added.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import { toCore } from "./bound_layer.ts";
import { type Fingerprint, isSame, toBusyKey } from "./claim_record.ts";
import { loadResults } from "./content.ts";
import { isContent } from "./content_checks.ts";
import { digest, toFingerprint, toOwner } from "./idempotent_call.ts";
import { keepKeyBytes } from "./keyed_runs.ts";
import { LocalValues } from "./local_values.ts";

/** The names of a tool and of the tool that plans its calls, in the group and on the server that has both. */
export interface Pair {
  readonly tool: string;
  readonly planner: string;
}

export interface PlannedRun {
  readonly pair: Pair;
  readonly input: unknown;
  readonly ctx: Context<unknown>;
}

export interface Applying extends PlannedRun {
  readonly token: Argument;
}

interface KeptPlan {
  readonly v: 1;
  readonly changes: unknown;
  readonly input: Fingerprint;
  /** The handlers that `plan` has called, if not every caller may call them. */
  readonly reads?: Reads;
}

/** Milliseconds for which a plan can be applied. */
const PLAN_MS = 600_000;

/** Maximum length of a plan as JSON, in characters. */
const MAX_PLAN = 65_536;

/** Bytes that a plan takes in addition to its JSON, as a key takes them in addition to its result. */
const PLAN_BYTES = 1024;

/** The plans of a server without a store. */
const LOCAL = {};

/** Makes a plan, and returns what the planning tool returns. */
export async function makePlan({ pair, input, ctx }: PlannedRun, plan: () => unknown) {
  const call = toCall(ctx, "make a plan");
  const print = await toFingerprint(call, input);
  const changes = await readChanges(call, pair, plan);
  // 72 bits, in 12 characters.
  const id = toBase64Url(crypto.getRandomValues(new Uint8Array(9)));
  await keepPlan(call, await toName(call, pair, id), {
    pair,
    kept: { v: 1, changes, input: print, reads: call.reads },
  });
  const how = `Nothing has changed yet. To make these changes, call ${pair.tool} with the same arguments and plan: ` +
    `${quote(id)}, within ${PLAN_MS / 60_000} minutes.`;
  return { plan: id, changes, how };
}

/** Finds the plan that a call applies. Returns its id, which is the key under which the tool runs once. */
export async function findPlan({ pair, input, ctx, token }: Applying): Promise<string> {
  const call = toCall(ctx, "find a plan");
  const { tool, planner } = pair;
  const given = readGiven(call);
  if (!given?.tokens.includes(token)) {
    throw new TypeError(
      `Cannot run tool ${quote(tool)}: its schema has no place for the argument plan; rename its own with transform()`,
    );
  }
  const id = given.values.get(token);
  if (id === undefined) {
    throw refuse(
      pair,
      `the argument plan is missing. First call ${planner} with the same arguments, which returns it.`,
    );
  }
  const kept = typeof id === "string" && /^[\w-]{12}$/.test(id)
    ? await readKept(call, await toName(call, pair, id), pair)
    : undefined;
  if (!kept) {
    // A task may continue on another instance after its plan has expired.
    if (!call.internal) throw toUnknown(pair, id);
    notePlan(call, { changes: undefined, isSpent: false });
    return String(id);
  }
  if (!isSame(kept.input, await toFingerprint(call, input))) {
    throw refuse(pair, `the plan ${quote(id)} is for other arguments. ${toRemedy(pair)}`);
  }
  // Another token of the same principal may lack the rights to what the plan shows.
  if (kept.reads) await repeatReads(call, kept.reads);
  notePlan(call, { changes: kept.changes, isSpent: false });
  return String(id);
}

/** Runs a tool if its plan is still the same. Throws a `ToolError` that names the differences otherwise. */
export async function applyPlan(
  { pair, ctx, token }: Applying,
  plan: () => unknown,
  run: () => unknown,
): Promise<unknown> {
  const call = toCall(ctx, "apply a plan");
  const planned = readPlan(call);
  if (!planned) throw new TypeError(`Cannot run tool ${quote(pair.tool)}: the call has no plan`);
  if (planned.isResumed) return await run();
  if (planned.changes === undefined) throw toUnknown(pair, readGiven(call)?.values.get(token));
  const differences = [...compare(planned.changes, await readChanges(call, pair, plan))];
  if (differences.length) {
    const more = differences.length - MAX_DIFFERENCES;
    const list = planned.isGuarded
      ? []
      : [...differences.slice(0, MAX_DIFFERENCES), ...more > 0 ? [`… and ${more} more`] : []];
    const state = `what it would change is no longer what the plan says. ${toRemedy(pair)}`;
    throw refuse(pair, [state, ...list].join("\n"));
  }
  // A layer that runs the tool again after a failure gets no new attempt without effects.
  const { isSpent } = planned;
  planned.isSpent = true;
  try {
    const value = await run();
    if (Object(value).isError === true) planned.isSpent = isSpent;
    return value;
  } catch (error) {
    if (isToolError(error)) planned.isSpent = isSpent;
    throw error;
  }
}

function refuse({ tool }: Pair, state: string): ToolError {
  return new ToolError(`${tool} did not run: ${state}`);
}

function toRemedy({ planner }: Pair): string {
  return `Call ${planner} with the same arguments for a new plan.`;
}

function toUnknown(pair: Pair, id: unknown): ToolError {
  return refuse(pair, `there is no plan ${quote(id)} for this call, or it has expired. ${toRemedy(pair)}`);
}

/** Returns what the author's function returns, as JSON. */
async function readChanges(call: Call, { tool }: Pair, plan: () => unknown): Promise<unknown> {
  const place = `the plan of tool ${quote(tool)}`;
  const given = await call.withoutQuestions(plan);
  const results = await loadResults({ place, call, core: toCore(call) }, given);
  const { value } = await results.forGuards(given);
  if (value === undefined || value === null) {
    throw new TypeError(
      `Cannot use ${place}: it returned ${show(given)}; return what would change, such as a list`,
    );
  }
  // The author's function may return an error instead of throwing it, which is no plan.
  if (isObject(value) && value.isError === true && Array.isArray(value.content) && value.content.every(isContent)) {
    throw new ToolError(value.content);
  }
  const text = JSON.stringify(value);
  if (text.length <= MAX_PLAN) return JSON.parse(text);
  const remedy = `return at most ${MAX_PLAN}, such as names and numbers of what would change`;
  throw new TypeError(`Cannot use ${place}: it has ${text.length} characters; ${remedy}`);
}

async function toName(call: Call, { tool }: Pair, id: string): Promise<string> {
  const core = toCore(call);
  const owner = toOwner(call, { place: `tool ${quote(tool)}`, isPlanned: true });
  return await toValues(call, core).hash("plan", await digest([core.sealer.realm, "plan", owner, tool, id]));
}

function toValues({ link: { account } }: Call, core: FeatureParts): SharedValues {
  return core.shared?.by(account) ?? toLocal(core);
}

function toLocal({ state, ticker }: FeatureParts): LocalValues {
  return state.slot(LOCAL, () => new LocalValues(ticker.clock));
}

async function keepPlan(
  call: Call,
  name: string,
  { pair, kept }: { readonly pair: Pair; readonly kept: KeptPlan },
): Promise<void> {
  const core = toCore(call);
  const { account } = call.link;
  const bytes = PLAN_BYTES + 2 * JSON.stringify(kept).length;
  const drop = () => {
    const values = core.shared?.by(account, { mustWait: true }) ?? toLocal(core);
    void values.queue(name, () => values.attempt("delete", () => values.delete(name)));
    return true;
  };
  const charge = keepKeyBytes(core, account, { bytes, memory: bytes, ttlMs: PLAN_MS, drop });
  const action = `make a plan for tool ${quote(pair.tool)}`;
  if (!charge) throw toBusy(`${action}: too many plans of this client are kept`, "idempotency.bytes, memory");
  const values = toValues(call, core);
  const isWritten = await values.attempt("set", async () => await values.set(name, kept, { ttlMs: PLAN_MS }));
  if (isWritten !== undefined) return;
  charge.end();
  throw toBusy(`${action}: the store does not respond`);
}

async function readKept(call: Call, name: string, pair: Pair): Promise<KeptPlan | undefined> {
  const values = toValues(call, toCore(call));
  const read = await values.attempt("get", async () => [await values.get(name)]);
  if (!read) throw toBusyKey({ tool: { place: `tool ${quote(pair.tool)}`, isPlanned: true } }, "storeLost");
  const value = read[0]?.value;
  // The cast is safe, because only this file creates plans, and only servers with the secret can seal them.
  return isObject(value) && value.v === 1 ? value as unknown as KeptPlan : undefined;
}

/** Maximum number of differences that the model reads. */
const MAX_DIFFERENCES = 10;

/** Maximum length of a value in a difference, in characters. */
const MAX_VALUE = 80;

/** Lists the differences between two JSON values, such as `files[0]: "a" is now "b"`. */
function* compare(before: unknown, now: unknown, path = ""): Generator<string> {
  if (before !== undefined && now !== undefined && toCanonicalText(before) === toCanonicalText(now)) return;
  const isList = Array.isArray(before);
  if (isObject(before) && isObject(now) || isList && Array.isArray(now)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(now)])) {
      yield* compare(
        Object.hasOwn(before, key) ? Object(before)[key] : undefined,
        Object.hasOwn(now, key) ? Object(now)[key] : undefined,
        isList ? `${path}[${key}]` : path ? `${path}.${key}` : key,
      );
    }
    return;
  }
  yield `${path || "the plan"}: ${toShort(before)} is now ${toShort(now)}`;
}

function toShort(value: unknown): string {
  const text = JSON.stringify(value) ?? "absent";
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE).toWellFormed()}…` : text;
}
