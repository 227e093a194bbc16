/**
 * Copies requests, to change their URL or body, or to pass them to the author's code.
 */
import { INTERNALS } from "../../../core/internals.ts";
import { isObject } from "../../../core/kit/json.ts";
import { isLight } from "../../../core/light_request.ts";

export interface Visit<Info> {
  readonly request: Request;
  readonly info: Info;
}

/** The parts of a request that a copy changes. Each part defaults to that of the original. */
export interface RequestChanges {
  readonly url?: string;
  readonly body?: ReadableStream<Uint8Array<ArrayBuffer>> | null;
}

/**
 * Returns a copy of a request, and facts about the connection that also answer for the copy.
 *
 * @throws {TypeError} if a new request cannot have the method of the original, such as TRACE.
 */
export function copyRequest<Info>({ request, info }: Visit<Info>, changes: RequestChanges): Visit<Info> {
  const { method, headers } = request;
  const { url = request.url, body = request.body } = changes;
  // Node requires `duplex` for a streamed body. `Object.assign` adds it, because the types of other runtimes lack it.
  const copy = new Request(url, Object.assign({ method, headers, body }, { duplex: "half" }));
  // Read the signal only for code that uses it, because reading the signal makes requests slower on Deno.
  Object.defineProperty(copy, "signal", { get: () => request.signal });
  return { request: copy, info: followCopy(info, copy, request) };
}

/**
 * Returns a request that the author's code can copy and send, with its body. Leaves a light request unchanged if the
 * platform does not support its method, such as TRACE.
 */
export function toOrdinary<Info>(visit: Visit<Info>): Visit<Info> {
  if (!isLight(visit.request)) return visit;
  try {
    return copyRequest(visit, {});
  } catch {
    return visit;
  }
}

/** A server, whose `fetch` the author may have replaced, as in `{ ...server, fetch }`. */
export interface Fetching<Info> {
  readonly fetch: (request: Request, info: Info) => Promise<Response>;
  readonly [INTERNALS]?: {
    /** The `fetch` of the library, which accepts light requests. */
    readonly fetch?: unknown;
  };
}

export function fetchFrom<Info>(server: Fetching<Info>, visit: Visit<Info>): Promise<Response> {
  const { request, info } = server.fetch === server[INTERNALS]?.fetch ? visit : toOrdinary(visit);
  return server.fetch(request, info);
}

/**
 * Wraps the server object of Bun. Its methods, such as `requestIP`, know only the requests that Bun has created, so they
 * must get the original instead of the copy. Otherwise the address of the client would be unknown, and nothing that is
 * counted by address would be limited. Returns the facts of other runtimes unchanged.
 */
function followCopy<T>(info: T, copy: Request, original: Request): T {
  if (!isObject(info) || !(isBun(info) || isBun(info.info))) return info;
  // Use an empty object as the target, because the fields of a frozen object could not have other values.
  const wrapped = new Proxy(Object.create(info), {
    get(_target, name) {
      const value: unknown = Reflect.get(info, name);
      if (name === "info") return followCopy(value, copy, original);
      // The author's `forward` must get the copy, whose host is checked.
      if (typeof value !== "function" || name === "forward") return value;
      return (...args: readonly unknown[]) =>
        Reflect.apply(value, info, args.map((each) => each === copy ? original : each));
    },
  });
  return wrapped;
}

function isBun(info: unknown): boolean {
  return isObject(info) && typeof info.requestIP === "function";
}
