/**
 * Adds the member that a layer has set to the structured content of a result. Loaded when a layer first sets a member.
 */
import { INTERNALS } from "../../core/internals.ts";
import { quote } from "../../core/protocol/errors.ts";
import { isObject, type Result } from "../../core/protocol/jsonrpc.ts";
import { withStructured } from "../../core/protocol/text_copy.ts";
import type { Bound } from "./bound_layer.ts";

/** Returns a result with the member, and with a text copy that contains it. */
export async function setMember(result: Result, value: unknown, { place, steps }: Bound): Promise<Result> {
  const { structuredContent } = result;
  const { member, name } = steps;
  // The layer has returned another result.
  if (!member || !isObject(structuredContent)) return result;
  const { problem } = await member[INTERNALS].value.check(value);
  const action = `set the member ${quote(member.name)} of ${place} in the layer ${quote(name)}`;
  if (problem !== undefined) throw new TypeError(`Cannot ${action}: ${problem}`);
  return withStructured(result, { ...structuredContent, [member.name]: value });
}
