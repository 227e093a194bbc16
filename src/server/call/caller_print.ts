/**
 * Compares the callers of a session, whose requests can have tokens with different rights.
 */
import type { Principal } from "./context.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";

/**
 * Returns a text that is the same for callers with the same principal. Leaves out the times and the id of a token, so
 * that a renewed token counts as the same caller. Returns `undefined` if the principal is not plain JSON data, because
 * `allow` could then distinguish callers that the text does not distinguish.
 */
export function toCallerPrint(principal: Principal | undefined): string | undefined {
  if (!principal) return "";
  const { expiresAt: _, claims, ...facts } = principal;
  try {
    return JSON.stringify([facts, isObject(claims) ? withoutTimes(claims) : claims], toPlain);
  } catch {
    return;
  }
}

/** Claims that differ between the tokens of one caller: of RFC 7519, and of Microsoft Entra. */
const TOKEN_CLAIMS = ["exp", "nbf", "iat", "jti", "aio", "rh", "uti"];

function withoutTimes(claims: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(claims).filter(([name]) => !TOKEN_CLAIMS.includes(name)));
}

function toPlain(this: Record<string, unknown>, name: string, value: unknown): unknown {
  const given = this[name];
  const isPlain = typeof given === "object"
    ? given === null || given instanceof Date || isPlainObject(given)
    : typeof given !== "function" && typeof given !== "symbol";
  if (!isPlain) throw new TypeError("Cannot compare callers: the principal is not plain data");
  return value;
}

function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}
