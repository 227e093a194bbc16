/**
 * Sends HTTP requests, with limits on time and size. Unless a host is allowed, the requests cannot reach this machine
 * or its network.
 */
import { ToolError } from "../library.ts";
import { hasErrorCode } from "../core/kit/error_code.ts";
import { lookUp } from "./look_up.ts";
import { isIpAddress, isPrivateAddress } from "./private_addresses.ts";

/** A request and its limits. */
export interface RequestOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Maximum time for the whole request, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum size of the response body, in bytes. */
  readonly maxBytes: number;
  /** Private hosts that the request may reach, with or without a port. */
  readonly allowPrivate: readonly string[];
  readonly signal: AbortSignal;
}

/** A response whose body has been read. */
export interface HttpResponse {
  readonly status: number;
  /** The media type of the body, without parameters. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

const MAX_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];

/**
 * Sends a request and follows redirects.
 *
 * @throws {ToolError} if the target is not allowed, or does not respond.
 */
export async function sendRequest(url: URL, options: RequestOptions): Promise<HttpResponse> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const signal = AbortSignal.any([options.signal, timeout]);
  try {
    return await sendFollowing(url, { ...options, signal });
  } catch (error) {
    if (error instanceof ToolError) throw error;
    // Errors contain only the origin of the URL, because the path and query may contain secrets.
    const origin = `${url.protocol}//${url.host}`;
    if (timeout.aborted) {
      throw new ToolError(`Cannot reach ${origin}: it did not respond within ${options.timeoutMs} ms (timeoutMs)`);
    }
    throw new ToolError(`Cannot reach ${origin}: ${describeCause(error)}`);
  }
}

/** The parts of a request that a redirect can change. */
interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function sendFollowing(first: URL, options: RequestOptions): Promise<HttpResponse> {
  let hop: Hop = { url: first, method: options.method, headers: options.headers, body: options.body };
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const { url, method, headers, body } = hop;
    await checkTarget(url, options.allowPrivate);
    const response = await fetch(url, { method, headers, body, signal: options.signal, redirect: "manual" });
    const location = response.headers.get("location");
    if (location === null || !REDIRECTS.includes(response.status)) {
      return {
        status: response.status,
        mediaType: (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase(),
        bytes: await readBody(response, options.maxBytes),
      };
    }
    await response.body?.cancel();
    hop = redirect(hop, response.status, location);
  }
  throw new ToolError(
    `Cannot reach ${first.host}: there were more than ${MAX_REDIRECTS} redirects; use the URL of the final target`,
  );
}

/**
 * Returns the request that follows a redirect. Headers and body are never sent to another origin, because they may
 * contain secrets.
 */
function redirect({ url, method, headers, body }: Hop, status: number, location: string): Hop {
  if (!URL.canParse(location, url.href)) {
    throw new ToolError(`Cannot follow the redirect from ${url.host} to ${location}: the target is not a URL`);
  }
  const target = new URL(location, url.href);
  const isCrossOrigin = target.origin !== url.origin;
  if (isCrossOrigin) headers = {};
  if (status === 303 || (status < 303 && method === "POST")) {
    method = method === "HEAD" ? "HEAD" : "GET";
    body = undefined;
    headers = Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "content-type"));
  }
  if (isCrossOrigin && (body !== undefined || method !== "GET" && method !== "HEAD")) {
    throw new ToolError(
      `Cannot follow the redirect from ${url.origin} to ${target.origin}: only GET and HEAD requests can be redirected to another origin; ` +
        `if you trust ${target.origin}, use its URL`,
    );
  }
  return { url: target, method, headers, body };
}

/**
 * Rejects URLs that are not http or https, and private hosts that are not allowed. Host names are resolved, because a
 * host name may resolve to a private address.
 */
async function checkTarget(url: URL, allowed: readonly string[]): Promise<void> {
  const { protocol, host, hostname } = url;
  if (protocol !== "http:" && protocol !== "https:") {
    throw new ToolError(`Cannot reach ${url.href}: its scheme is not allowed; use http or https`);
  }
  if (url.username || url.password) {
    throw new ToolError(
      `Cannot reach ${host}: the URL contains credentials; send them in the Authorization header instead`,
    );
  }
  if (allowed.includes(host) || allowed.includes(hostname)) return;
  const addresses = isIpAddress(hostname) ? [hostname.replace(/[[\]]/g, "")] : await lookUpAddresses(url);
  const address = addresses.find(isPrivateAddress);
  if (address === undefined) return;
  throw new ToolError(
    `Cannot reach ${host}: ${address === hostname ? "it" : address} is an address of this machine or its network; ` +
      `to allow this host, set allowPrivate: [${JSON.stringify(host)}]`,
  );
}

async function lookUpAddresses(url: URL): Promise<readonly string[]> {
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  try {
    return await lookUp(url.hostname, port);
  } catch (error) {
    if (!hasErrorCode(error) || error.code !== "EPERM") throw error;
    throw new ToolError(
      `Cannot reach ${url.hostname}: looking up its address is not permitted; run with ` +
        `--allow-net=${url.hostname}:${port}`,
    );
  }
}

async function readBody(response: Response, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    // The error ends the loop, and the end of the loop cancels the body stream.
    if (size > maxBytes) {
      throw new ToolError(`Cannot read the response: it is larger than ${maxBytes} bytes (maxBytes)`);
    }
    chunks.push(chunk);
  }
  // The cast is safe, because the bytes of a stream are never in shared memory.
  return new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer());
}

function describeCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && !message.includes(cause.message) ? `${message}: ${cause.message}` : message;
}
