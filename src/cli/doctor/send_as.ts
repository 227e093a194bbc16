/**
 * Sends requests for another host than that of their URL, which `fetch` does not.
 *
 * @module
 */
import { request } from "node:http";
import type { SendAs } from "./web_page_checks.ts";

/** Sends a POST request over plain HTTP with exactly these headers. Returns the status. Throws if there is no response. */
export const sendAs: SendAs = (url, { headers, body, timeoutMs }) => {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const sent = request(url, { method: "POST", headers, timeout: timeoutMs }, (response) => {
    resolve(response.statusCode ?? 0);
    response.destroy();
  });
  sent.on("error", reject);
  sent.on("timeout", () => sent.destroy(new Error(`no response within ${timeoutMs} ms`)));
  sent.end(body);
  return promise;
};
