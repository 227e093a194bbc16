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
  const checked = await member[INTERNALS].value.check(value);
  const action = `set the member ${quote(member.name)} of ${place} in the layer ${quote(name)}`;
  if (checked.problem !== undefined) throw new TypeError(`Cannot ${action}: ${checked.problem}`);
  // The value that was set may lack defaults, or have properties that the schema does not list.
  return withStructured(result, { ...structuredContent, [member.name]: checked.value });
}
