/**
 * Requests to other servers, kept off this machine and its network, and bounded in time and size.
 *
 * @module
 */
import { ToolError } from "../../library.ts";
import { platform } from "../platform.ts";
import { isCoded } from "../platform_files.ts";
import { isAddress, isPrivateAddress } from "./addresses.ts";

/** What is asked. */
export interface RequestOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs: number;
  /** Of the answer. */
  readonly maxBytes: number;
  /** Hosts, with or without a port, that may be private. */
  readonly allowPrivate: readonly string[];
  readonly signal: AbortSignal;
}

/** What was answered. */
export interface Answer {
  readonly status: number;
  /** Its media type, without parameters. */
  readonly type: string;
  readonly bytes: Uint8Array;
}

const MOST_REDIRECTS = 5;

/**
 * Makes a request, and follows where it is sent on to.
 *
 * @throws {ToolError} if there is no answer, or no leave to ask.
 */
export async function request(url: URL, options: RequestOptions): Promise<Answer> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const signal = AbortSignal.any([options.signal, timeout]);
  try {
    return await follow(url, { ...options, signal });
  } catch (error) {
    if (error instanceof ToolError) throw error;
    // The address alone: what stands behind it may be secret.
    const place = `${url.protocol}//${url.host}`;
    if (timeout.aborted) {
      throw new ToolError(`Cannot ask ${place}: no answer within ${options.timeoutMs} ms (timeoutMs)`);
    }
    throw new ToolError(`Cannot ask ${place}: ${tellCause(error)}`);
  }
}

async function follow(first: URL, options: RequestOptions): Promise<Answer> {
  let [url, method, body] = [first, options.method, options.body];
  let headers = options.headers;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    await checkTarget(url, options.allowPrivate);
    const response = await fetch(url, { method, headers, body, signal: options.signal, redirect: "manual" });
    const location = response.headers.get("location");
    if (location === null || ![301, 302, 303, 307, 308].includes(response.status)) {
      return {
        status: response.status,
        type: (response.headers.get("content-type") ?? "").split(";")[0].trim().toLowerCase(),
        bytes: await readBody(response, options.maxBytes),
      };
    }
    await response.body?.cancel();
    if (!URL.canParse(location, url.href)) {
      throw new ToolError(`Cannot follow ${url.host} to ${location}: it is no URL`);
    }
    const next = new URL(location, url.href);
    const isElsewhere = next.origin !== url.origin;
    // What one server may know, such as a key, is not for another one.
    if (isElsewhere) headers = {};
    if (response.status === 303 || (response.status < 303 && method === "POST")) {
      method = method === "HEAD" ? "HEAD" : "GET";
      body = undefined;
      headers = Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "content-type"));
    }
    if (isElsewhere && (body !== undefined || method !== "GET" && method !== "HEAD")) {
      throw new ToolError(
        `Cannot follow ${url.origin} to ${next.origin}: another origin must not get what was meant for this one; ` +
          "ask it directly, if you trust it",
      );
    }
    url = next;
  }
  throw new ToolError(`Cannot ask ${first.host}: it was sent on more than ${MOST_REDIRECTS} times`);
}

/**
 * Refuses what is not http or https, and what is private without being allowed by name. A name is looked up: it may
 * stand for an address of this machine.
 */
async function checkTarget(url: URL, allowed: readonly string[]): Promise<void> {
  const { protocol, host: place, hostname } = url;
  if (protocol !== "http:" && protocol !== "https:") throw new ToolError(`Cannot ask ${url.href}: use http or https`);
  if (url.username || url.password) throw new ToolError(`Cannot ask ${place}: put name and password into a header`);
  if (allowed.includes(place) || allowed.includes(hostname)) return;
  const addresses = isAddress(hostname) ? [hostname.replace(/[[\]]/g, "")] : await lookUp(url);
  const found = addresses.find(isPrivateAddress);
  if (found === undefined) return;
  throw new ToolError(
    `Cannot ask ${place}: ${found === hostname ? "it" : found} is an address of this machine or its network; ` +
      `to allow it, set allowPrivate: [${JSON.stringify(place)}]`,
  );
}

async function lookUp(url: URL): Promise<readonly string[]> {
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  try {
    return await platform.lookUp(url.hostname, port);
  } catch (error) {
    if (!isCoded(error) || error.code !== "EPERM") throw error;
    const place = `${url.hostname}:${port}`;
    throw new ToolError(
      `Cannot ask ${url.hostname}: its address may not be looked up; permit that with --allow-net=${place}`,
    );
  }
}

async function readBody(response: Response, most: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.length;
    // Leaving the loop cancels the rest.
    if (size > most) throw new ToolError(`Cannot read the answer: it has more than ${most} bytes (maxBytes)`);
    pieces.push(piece);
  }
  return new Uint8Array(await new Blob(pieces as BlobPart[]).arrayBuffer()); // Bytes of a stream are never shared.
}

function tellCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error && !message.includes(cause.message) ? `${message}: ${cause.message}` : message;
}
