/**
 * Creates the core of a server from its options.
 */
import { toFrozen } from "../core/kit/frozen.ts";
import { INTERNAL_ERROR, McpError } from "../core/protocol/errors.ts";
import { INTERNALS } from "../core/internals.ts";
import { LazyModule } from "../core/protocol/lazy_module.ts";
import { type Authentication, UNREADY } from "./engine/auth.ts";
import { CallerWatch } from "./call/caller_watch.ts";
import { withoutNulls } from "../core/known_options.ts";
import { readCapabilities } from "./call/capabilities.ts";
import { createObserving } from "./engine/observing.ts";
import type { Core } from "./engine/core.ts";
import { readLimits } from "./capacity/limits.ts";
import { seesLists } from "./call/middleware.ts";
import type { Unlayered } from "./engine/layers.ts";
import { combineObservers } from "./call/combined_observer.ts";
import type { SharedState } from "./engine/store.ts";
import type { FaultPlace, Observer } from "./call/observer.ts";
import type { ServerOptions } from "./options.ts";

/** The options of a server without its handlers. The servers of all concrete paths share these options. */
export type CommonOptions = Unlayered<Omit<ServerOptions, "handlers">>;

/** Returns `undefined` if the server has no store. */
export type Share = (core: Pick<Core, "limits" | "observer">) => SharedState | undefined;

/** Loaded on demand, because few servers have the option `admit`. */
const lazyAdmission = new LazyModule(() => import("./engine/admission.ts"));

/** Returns the error if the secret is missing. `isSealed` is `false` if the store needs a secret. */
function findProblem({ secret }: CommonOptions, isSealed: boolean): TypeError | undefined {
  if (secret === "") {
    return new TypeError("Cannot start the server: its secret is empty; check that its environment variable is set");
  }
  if (isSealed) return;
  return new TypeError(
    "Cannot start the server: other processes can use its store, but the server has no secret; set the same `secret` in " +
      "all processes",
  );
}

/** Throws if an option is invalid. */
export function createCore(
  options: CommonOptions,
  { share, ...own }: Pick<Core, "ticker" | "state" | "sealer"> & { readonly share: Share },
): Core {
  const { name, version, ttlMs = 0, admit: decide } = options;
  const { title, description, websiteUrl, icons, instructions } = withoutNulls(options);
  const limits = readLimits(options.limits);
  const observer = combineObservers(options.observer);
  const auth = readAuth(options);
  const isSealed = own.sealer.isShared || !options.store?.[INTERNALS].isShared;
  const core: Core = {
    ...own,
    callers: new CallerWatch(own.ticker),
    createdAt: own.ticker.clock.date(),
    identity: toFrozen({ name, version, title, description, websiteUrl, icons }),
    info: toFrozen({ name, version }),
    instructions,
    limits,
    ttlMs,
    cacheScope: options.cacheScope ?? (auth || options.use?.some(seesLists) ? "private" : "anonymous"),
    hasMiddleware: !!options.use?.length,
    requiresSession: !!options.requireSession,
    streams: options.streams ?? true,
    mapError: options.mapError,
    encoders: options.encoders,
    publishSchema: options.publishSchema,
    sessionData: options.sessionData,
    lenientArguments: options.lenientArguments,
    text: options.text,
    auth,
    unready: findProblem(options, isSealed) ?? auth?.[UNREADY],
    observer,
    shared: isSealed ? share({ limits, observer }) : undefined,
    can: readCapabilities(options.capabilities),
    admit: decide && ((request) => {
      const { loaded } = lazyAdmission;
      return loaded
        ? loaded.admit(core, decide, request)
        : lazyAdmission.load().then(({ admit }) => admit(core, decide, request));
    }),
    report: (error, about) => report(core, error, about),
  };
  if (options.observer) core.observing = createObserving(core);
  return core;
}

/** Changes `core.observer` in place, because other parts of the server refer to this object. */
export function addObserver(core: Core, { observer = [] }: Pick<ServerOptions, "observer">, added: Observer): void {
  Object.assign(core.observer, combineObservers([observer, added].flat()));
  core.observing = createObserving(core);
}

/** Throws if the value has no `authenticate()` method. The HTTP authenticator checks the other members. */
function readAuth({ auth }: CommonOptions): Authentication | undefined {
  if (auth === undefined) return;
  const read = typeof auth === "function"
    ? { authenticate: auth }
    // A scheme combines the list, so that a server without `auth` does not load the code that combines schemes.
    : auth instanceof Array
    ? auth.find((each) => each?.scheme?.combine)?.scheme?.combine(auth)
    : auth;
  if (typeof read?.authenticate === "function") return read;
  throw new TypeError(
    "Cannot create a server: auth is not an authentication; use a function, apiKey(), or a list with scheme: authScheme()",
  );
}

/** Returns the error for the client, which contains only an error id. */
function report(core: Core, error: unknown, { method, subject, isUnawaited }: FaultPlace = {}): McpError {
  const id = crypto.randomUUID().slice(0, 8);
  const event = { id, error, server: core.info.name, method, subject, ...isUnawaited && { isUnawaited } };
  core.observer.fault?.(event);
  core.development?.fault(event);
  core.observing?.reachBy(error);
  return new McpError(INTERNAL_ERROR, "Internal error", { errorId: id });
}
