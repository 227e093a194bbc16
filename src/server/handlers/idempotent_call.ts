/**
 * Runs one call of a tool with an idempotency key. Loaded by `idempotency.ts` when a client first calls such a tool.
 */
import { sha256 } from "../../core/kit/sha256.ts";
import { toCanonical } from "../../core/protocol/canonical.ts";
import { INVALID_PARAMS, INVALID_REQUEST, McpError, withLimits } from "../../core/protocol/errors.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "../call/call.ts";
import type { Context } from "../call/context.ts";
import { readGiven } from "../call/given.ts";
import { readPlan } from "../call/plans.ts";
import { show } from "../../core/known_options.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";
import type { EncodedValue, Filter } from "../visibility/guards.ts";
import type { Callable } from "./callable.ts";
import { type Fingerprint, KeyedRuns, type Returned } from "./keyed_runs.ts";
import { readHidden } from "./hidden_values.ts";
import type { IdempotentTool } from "./idempotent_tool.ts";

export async function runIdempotent(
  tool: IdempotentTool,
  invoke: Callable["invoke"],
  given: Parameters<Callable["invoke"]>,
): Promise<Result> {
  const [call, ctx, value, core, filter] = given;
  const key = checkKey(await readKey(tool, call, value), tool, core);
  const plan = readPlan(call);
  if (plan) plan.isGuarded = tool.isGuarded;
  const begin = async (filter: Filter | undefined) => {
    // A cancelled call does not start its handler.
    if (call.ended) throw call.endError;
    call.onRun?.();
    return await invoke(call, ctx, value, core, filter);
  };
  if (key === undefined) return await begin(filter);
  const token = await digest([core.sealer.realm, "idempotency", toOwner(call, tool), tool.name, key]);
  const claims = core.state.slot(KeyedRuns, () => new KeyedRuns(core.ticker));
  const input = await toFingerprint(call, value);
  const start = async (): Promise<Returned> => {
    let encoded: EncodedValue | undefined;
    const keep = (value: EncodedValue) => void (encoded = value);
    const result = await begin(filter && ((run, ctx, sending) => filter(run, ctx, { ...sending, keep })));
    return { result, encoded };
  };
  // Passing the value on requires `invoke`, because the output guards can use the per-call services of the tool.
  const repeat = filter && tool.isGuarded
    ? async (kept: EncodedValue) =>
      await invoke(call, ctx, value, core, (run, ctx, sending) => filter(run, ctx, { ...sending, kept }))
    : undefined;
  return await claims.run({ tool, call, core, key, token, input, start, repeat });
}

async function readKey({ key, services }: IdempotentTool, call: Call, value: unknown): Promise<unknown> {
  // The cast is safe, because the input schema and the guards returned this value.
  const read = async (_call: Call, ctx: Context<never> = call) => await key(value as never, ctx);
  return await call.withoutQuestions(async () => await (services?.share(read) ?? read)(call));
}

function checkKey(key: unknown, { place }: IdempotentTool, { limits }: FeatureParts): string | undefined {
  if (key === undefined) return;
  if (typeof key !== "string") {
    const remedy = "return a string, or undefined for a call without a key";
    throw new TypeError(`Cannot run ${place}: its function for the idempotency key returned ${show(key)}; ${remedy}`);
  }
  const { keyCharacters } = limits.idempotency;
  if (key.length > 0 && key.length <= keyCharacters) return key;
  const limit = "idempotency.keyCharacters";
  const state = `the idempotency key has ${key.length} characters; use 1 to ${keyCharacters} (${limit})`;
  throw withLimits(new McpError(INVALID_PARAMS, `Cannot run ${place}: ${state}`), limit);
}

// Returns the owner of a key. Without the owner in the key, a caller would get the result of another caller that used
// the same key.
export function toOwner(
  { principal, link }: Call,
  { place, isPlanned }: Pick<IdempotentTool, "place" | "isPlanned">,
): readonly string[] {
  if (principal) return ["principal", principal.id];
  if (link.owner !== undefined) return ["connection", link.owner];
  // Nobody can guess the id of a plan.
  if (isPlanned) return ["anyone"];
  throw new McpError(
    INVALID_REQUEST,
    `Cannot run ${place} with an idempotency key: the request has neither an authenticated caller nor a session; ` +
      "authenticate, or open a session",
  );
}

// Returns the digests of the validated input and of the raw arguments. Inputs with the same meaning have equal
// validated inputs. The raw arguments are also needed, because a schema may add random values, and class instances
// cannot be compared as text. The raw arguments include hidden arguments, which may differ between tenants.
export async function toFingerprint(call: Call, valid: unknown): Promise<Fingerprint> {
  const { rest: sent = call.params.arguments ?? {} } = readGiven(call) ?? {};
  const hidden = readHidden(call);
  const raw = await digest(toCanonical(hidden ? [sent, hidden] : sent));
  return isJson(valid, { left: MAX_VALUES }) ? { raw, valid: await digest(toCanonical(valid)) } : { raw };
}

/**
 * Maximum number of JSON values of an input that are compared. The limit stops the comparison of values that contain
 * themselves, or that contain one object many times.
 */
const MAX_VALUES = 200_000;

/** Maximum number of nested levels of an input that are compared. */
const MAX_DEPTH = 256;

/** Whether a value is plain data, which JSON represents exactly. */
function isJson(value: unknown, budget: { left: number }, depth = 0): boolean {
  if (--budget.left < 0 || depth > MAX_DEPTH) return false;
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return true;
  if (typeof value !== "object") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (Array.isArray(value)) {
    return prototype === Array.prototype && value.length <= budget.left &&
      Array.from(value).every((item) => isJson(item, budget, depth + 1));
  }
  if (prototype !== Object.prototype && prototype !== null || Object.getOwnPropertySymbols(value).length) return false;
  return Object.values(value).every((item) => isJson(item, budget, depth + 1));
}

export function digest(value: unknown): Promise<string> {
  return sha256(JSON.stringify(value));
}
