/**
 * Checks origins for a content security policy.
 *
 * @module
 */

const HOST = String.raw`(?:\*\.)?[a-z\d](?:[a-z\d.-]*[a-z\d])?|\[[\da-f:.]+\]`;
const SOURCE = new RegExp(String.raw`^(?:https?|wss?)://(?:${HOST})(?::\d{1,5})?$`, "i");

/**
 * Whether a value is an origin that may be written into a policy, such as `https://*.example.com`. Any other text is
 * rejected, because a space or a semicolon would begin another source or directive.
 */
export function isOriginSource(value: unknown): value is string {
  return typeof value === "string" && value.length <= 300 && SOURCE.test(value);
}
