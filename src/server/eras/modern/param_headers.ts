/**
 * Checks the headers that repeat tool arguments. Proxies that do not read request bodies rely on these headers.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Custom Headers from Tool Parameters)
 */
import { readAt } from "../../../core/kit/json.ts";
import { decodeHeaderValue } from "../../../core/protocol/header_value.ts";
import type { HeaderParam } from "../../../core/schema/header_params.ts";
import type { HeaderReader } from "../../call/link.ts";
import { isRepeated, toMismatch } from "./envelope.ts";

/** Throws an `McpError` if a header that the tool's schema declares does not equal its argument. */
export function checkParamHeaders(wanted: readonly HeaderParam[], headers: HeaderReader, args: unknown): void {
  for (const { header, path, type } of wanted) {
    const received = headers.get(`mcp-param-${header}`);
    const value = readAt(args, path);
    const name = `Mcp-Param-${header}`;
    if (value === undefined || value === null) {
      if (received !== null) throw toMismatch(name, received, "nothing");
      continue;
    }
    // Do not check types here, because the tool's schema checks the types. Convert with JSON instead of String(),
    // because an object's own toString() may throw.
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const same = received !== null &&
      (isRepeated(received, text) || (type === "integer" && isSameNumber(received, value)));
    if (!same) throw toMismatch(name, received, text);
  }
}

function isSameNumber(header: string, value: unknown): boolean {
  const text = decodeHeaderValue(header)?.trim();
  return /^-?[\d.]+(e[+-]?\d+)?$/i.test(text ?? "") && Number(text) === value;
}
