/**
 * Runs one call of a tool with an idempotency key. Loaded with the first one, by `idempotency.ts`.
 *
 * @module
 */
import { toBase64Url } from "../kit/base64.ts";
import { toCanonical } from "../protocol/canonical.ts";
import { INVALID_PARAMS, INVALID_REQUEST, McpError } from "../protocol/errors.ts";
import type { Result } from "../protocol/jsonrpc.ts";
import type { Call } from "../core/call/call.ts";
import type { Context } from "../core/call/context.ts";
import { show } from "../core/call/known_options.ts";
import type { Ticker } from "../core/capacity/timers.ts";
import type { FeatureParts } from "../core/visibility/feature_parts.ts";
import type { Callable } from "./callable.ts";
import { Claims, type Fingerprint } from "./claims.ts";
import type { IdempotentTool } from "./idempotent_tool.ts";

/** The claims of each server. Its concrete paths share a ticker. */
const allClaims = new WeakMap<Ticker, Claims>();

/** Runs a call. If its key is known, the result is that of the first call. */
export async function runIdempotent(
  tool: IdempotentTool,
  invoke: Callable["invoke"],
  given: Parameters<Callable["invoke"]>,
): Promise<Result> {
  const [call, , value, core] = given;
  const key = checkKey(await readKey(tool, call, value), tool, core);
  const start = async () => {
    // A cancelled call does not start its handler.
    if (call.ended) throw call.reason;
    call.onRun?.();
    return await invoke(...given);
  };
  if (key === undefined) return await start();
  const token = await digest([core.sealer.realm, "idempotency", toOwner(call, tool), tool.name, key]);
  const claims = allClaims.get(core.ticker) ?? new Claims(core.ticker);
  allClaims.set(core.ticker, claims);
  const input = await toFingerprint(call.params.arguments, value);
  return await claims.run({ tool, call, core, key, token, input, start });
}

async function readKey({ key, services }: IdempotentTool, call: Call, value: unknown): Promise<unknown> {
  // The schema and the guards have returned the input.
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
  throw new McpError(
    INVALID_PARAMS,
    `Cannot run ${place}: the idempotency key has ${key.length} characters; use 1 to ${keyCharacters} ` +
      "(idempotency.keyCharacters)",
  );
}

// A key that everybody shares would give the result of one caller to another one.
function toOwner({ principal, link }: Call, { place }: IdempotentTool): readonly string[] {
  if (principal) return ["principal", principal.id];
  if (link.owner !== undefined) return ["connection", link.owner];
  throw new McpError(
    INVALID_REQUEST,
    `Cannot run ${place} with an idempotency key: the request has neither an authenticated caller nor a session; ` +
      "authenticate, or open a session",
  );
}

// The validated input, so that arguments that mean the same are the same. The arguments too, because a schema may add a
// random or a changing value, and because an instance of a class has no text by which two of them could be compared.
async function toFingerprint(given: unknown, valid: unknown): Promise<Fingerprint> {
  const raw = await digest(toCanonical(given ?? {}));
  return isJson(valid, { left: MAX_VALUES }) ? { raw, valid: await digest(toCanonical(valid)) } : { raw };
}

/** JSON values in an input that are compared. A value that is shared or contains itself may stand for far more. */
const MAX_VALUES = 200_000;

/** Levels of an input that are compared. */
const MAX_DEPTH = 256;

/** Tests for plain data, which a JSON text represents exactly. */
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

async function digest(value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return toBase64Url(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}
