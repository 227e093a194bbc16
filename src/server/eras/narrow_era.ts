/**
 * Limits a server to some protocol revisions. Loaded on demand, because most servers serve all revisions.
 *
 * @see specification/2026-07-28/basic/versioning
 */
import { McpError, quote, UNSUPPORTED_VERSION } from "../../core/protocol/errors.ts";
import { type Incoming, isObject, toFailure } from "../../core/protocol/jsonrpc.ts";
import type { Engine, Era } from "../engine/era.ts";
import type { Link, Reply } from "../call/link.ts";
import { META_VERSION, VERSION } from "./modern/meta_keys.ts";
import { REVISIONS } from "./revisions.ts";

/** A client that requests another revision gets an error with a list of the served revisions. */
export function narrowEra(engine: Engine, era: Era, served: readonly string[]): Era {
  return {
    accept(message, link) {
      const requested = findUnserved(message, link, served);
      return requested === undefined
        ? era.accept(message, link)
        : refuse(engine, { message, link }, { supported: served, requested });
    },
    attach: era.attach?.bind(era),
    detach: era.detach?.bind(era),
    load: era.load?.bind(era),
    evictIdle: era.evictIdle?.bind(era),
  };
}

/** Returns the revision that a message requests, if the server does not serve that revision. */
function findUnserved(message: Incoming, { version }: Link, served: readonly string[]): string | undefined {
  const params = message.kind === "request" || message.kind === "notification" ? message.params : undefined;
  if (message.kind === "request" && message.method === "initialize") {
    const offered = params?.protocolVersion;
    // Do not reject `initialize` if the server serves an older revision, because the response offers that revision.
    return typeof offered === "string" && served.at(-1) === VERSION ? offered : undefined;
  }
  const stated = isObject(params?._meta) ? params._meta[META_VERSION] ?? version : version;
  if (typeof stated !== "string" || served.includes(stated)) return;
  // Do not report an unknown revision here, because the era rejects unknown revisions.
  const known: readonly string[] = REVISIONS;
  return known.includes(stated) || !served.includes(VERSION) ? stated : undefined;
}

interface Received {
  readonly message: Incoming;
  readonly link: Link;
}

/** The revisions that the error contains, so that the client can request a supported revision. */
interface Versions {
  readonly supported: readonly string[];
  readonly requested: string;
}

function refuse({ core }: Engine, { message, link }: Received, { supported, requested }: Versions): Reply {
  const error = new McpError(
    UNSUPPORTED_VERSION,
    `Cannot serve the request: protocol version ${quote(requested)} is not supported; use ${supported.join(", ")}`,
    { supported, requested: requested.slice(0, 200) },
  );
  const { code, message: state } = error;
  const method = "method" in message ? message.method : undefined;
  core.observing?.refuse(link, { status: 400, message: state, reason: "revision", code, method });
  if (message.kind === "notification" || message.kind === "response") return link.http ? { status: 400 } : {};
  return { text: toFailure(message.kind === "request" ? message.id : undefined, error), status: 400 };
}
