/**
 * Methods that exist only in sessions.
 *
 * @see specification/2025-11-25/basic/utilities/ping
 * @see specification/2025-11-25/server/utilities/logging
 * @see specification/2025-11-25/server/resources (Subscriptions)
 */
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  McpError,
  METHOD_NOT_FOUND,
  quote,
  toBusy,
  withLimits,
} from "../../../core/protocol/errors.ts";
import type { Result } from "../../../core/protocol/jsonrpc.ts";
import { LOG_LEVELS } from "../../../core/protocol/types.ts";
import { toBytes } from "../../../core/protocol/weight.ts";
import type { Call } from "../../call/call.ts";
import { canStream } from "../../engine/announced.ts";
import type { Engine } from "../../engine/era.ts";
import type { Runner } from "../../visibility/feature.ts";
import type { Core } from "../../engine/core.ts";
import type { SessionState, SharedSession } from "../../engine/store.ts";
import { countSubscriber, isWatchable } from "../../engine/watching.ts";
import { announceSubscription, type Session } from "./session_state.ts";

/** Returns the runner of a session method, whose result is always empty. Returns `undefined` for all other methods. */
export function findSessionMethod(engine: Engine, session: Session, call: Call): Runner | undefined {
  const { core, registry } = engine;
  const { method, params } = call;
  switch (method) {
    case "ping":
      return { run: () => EMPTY };
    case "logging/setLevel":
      if (!core.can.logging || !canStream(core, call.link)) return;
      return {
        run() {
          const level = readLevel(params.level);
          return share(session, () => void (session.client.logLevel = level), (state) => ({ ...state, level }));
        },
      };
    case "resources/subscribe":
      if (!canStream(core, call.link)) throw new McpError(METHOD_NOT_FOUND, NO_STREAMS);
      if (!registry.capabilities.resources?.subscribe) return;
      return {
        run() {
          if (call.http && session.id === undefined) throw new McpError(INVALID_REQUEST, NO_SESSION);
          const uri = readUri(params.uri);
          const count = () => countSubscriber(engine, uri, call);
          return share(session, () => watch(session, uri, { core, count }), (state) => {
            const uris = [...new Set(state.uris).add(uri)];
            // Count again, because `state` includes the URIs that other instances have added.
            if (!isWatchable(uris, core.limits)) throw new McpError(INVALID_PARAMS, TOO_MANY);
            return { ...state, uris };
          });
        },
      };
    case "resources/unsubscribe":
      if (!canStream(core, call.link) || !registry.capabilities.resources?.subscribe) return;
      return {
        run() {
          const uri = readUri(params.uri);
          const unwatched = (state: SessionState) => ({ ...state, uris: state.uris?.filter((each) => each !== uri) });
          return share(session, () => unwatch(session, uri, core), unwatched);
        },
      };
  }
}

const EMPTY: Result = {};

/** Changes the session in this process, and in the store if the server has a store. */
function share(
  { shared }: Session,
  changeHere: () => void,
  change: (state: SessionState) => SessionState,
): Result | Promise<Result> {
  if (shared) return shareWith(shared, changeHere, change);
  changeHere();
  return EMPTY;
}

async function shareWith(
  shared: SharedSession,
  changeHere: () => void,
  change: (state: SessionState) => SessionState,
): Promise<Result> {
  try {
    changeHere();
  } catch {
    // The limit may have been reached only because this instance does not know yet that another instance has removed
    // subscriptions. Read the state and try again.
    await shared.refreshLocal();
    changeHere();
  }
  await shared.update(change);
  // Apply the change again, because a change by another instance may have undone the first `changeHere`.
  changeHere();
  return EMPTY;
}

/** Counts a session as a subscriber to a resource. Returns a function that ends this subscription. */
export type CountSubscriber = (session: Session, uri: string) => () => void;

interface WatchOptions {
  readonly core: Core;
  readonly count: CountSubscriber;
}

/** Applies a session's stored state, which another instance has changed. */
export function applyState(session: Session, { level, uris = [] }: SessionState, options: WatchOptions): void {
  if (level !== undefined) session.client.logLevel = readLevel(level);
  const isWatched = new Set(uris);
  for (const uri of [...session.watched.keys()]) if (!isWatched.has(uri)) unwatch(session, uri, options.core);
  for (const uri of isWatched) watch(session, uri, options);
}

const WATCHED = "streams.watchedUris";
const TOO_MANY = `Cannot subscribe: this session watches too many resources, or their URIs are too long (${WATCHED})`;

const NO_STREAMS =
  "Cannot subscribe: this server sends no event streams over HTTP (streams: false); read the resource again instead";

const NO_SESSION = "Cannot subscribe: without an Mcp-Session-Id header, the server has no stream for notifications";

function readLevel(level: unknown): typeof LOG_LEVELS[number] {
  const known = LOG_LEVELS.find((each) => each === level);
  if (!known) {
    throw new McpError(
      INVALID_PARAMS,
      `Cannot set the log level: ${quote(level)} is not one of ${LOG_LEVELS.join(", ")}`,
    );
  }
  return known;
}

function readUri(uri: unknown): string {
  if (typeof uri === "string") return uri;
  throw new McpError(INVALID_PARAMS, "Cannot subscribe: uri is not a string");
}

// Accept hidden and unknown resources too, so that a client cannot find out which resources exist. `allow` decides for
// each change whether the client is notified.
function watch(session: Session, uri: string, { core: { limits, observer }, count }: WatchOptions): void {
  const { account, watched } = session;
  if (watched.has(uri)) return;
  if (!isWatchable([...watched.keys(), uri], limits)) {
    throw withLimits(new McpError(INVALID_PARAMS, TOO_MANY), WATCHED);
  }
  if (!account.hold(toHeld(uri))) {
    throw toBusy("subscribe: too much memory is used", "memory.bytesPerClient, memory.bytes");
  }
  session.held += toHeld(uri);
  watched.set(uri, count(session, uri));
  announceSubscription(observer, session, { uri });
}

function unwatch(session: Session, uri: string, { observer }: Core): void {
  session.watched.get(uri)?.();
  if (!session.watched.delete(uri)) return;
  session.account.free(toHeld(uri));
  session.held -= toHeld(uri);
  announceSubscription(observer, session, { uri, why: "client" });
}

/** Returns the memory that a watched URI and its entry take, in bytes. */
function toHeld(uri: string): number {
  return toBytes(uri) + 100;
}
