/**
 * Checks origins for the content security policy of an app.
 */

const HOST = String.raw`(?:\*\.)?[a-z\d](?:[a-z\d.-]*[a-z\d])?|\[[\da-f:.]+\]`;
const SOURCE = new RegExp(String.raw`^(?:https?|wss?)://(?:${HOST})(?::\d{1,5})?$`, "i");

/**
 * Tests whether a value is an origin that can be inserted into a policy, such as `https://*.example.com`. The check is
 * strict, because a space or a semicolon would start another source or directive.
 */
export function isOriginSource(value: unknown): value is string {
  return typeof value === "string" && value.length <= 300 && SOURCE.test(value);
}
