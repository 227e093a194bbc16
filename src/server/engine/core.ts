/**
 * The options and objects that all parts of one server share.
 */
import type { Implementation } from "../../core/protocol/types.ts";
import type { Authentication } from "./auth.ts";
import type { CallerWatch } from "../call/caller_watch.ts";
import type { ClientInfo, ReadPathParams } from "../call/context.ts";
import type { Development } from "../call/development.ts";
import type { Link } from "../call/link.ts";
import type { RequestReport } from "../call/observer.ts";
import type { SessionOptions } from "../call/session_data.ts";
import type { SharedState } from "./store.ts";
import type { FeatureParts } from "../visibility/feature_parts.ts";

/** A request whose handler has not been looked up yet, or a response. */
export interface Entering {
  readonly method: string;
  readonly link: Pick<Link, "transport" | "principal" | "http">;
  readonly client: ClientInfo;
  readonly pathParams?: ReadPathParams;
  readonly observed?: RequestReport;
}

export interface Core extends FeatureParts, SessionOptions {
  readonly identity: Implementation;
  readonly instructions?: string;
  /** Watches the callers of open streams. */
  readonly callers: CallerWatch;
  readonly auth?: Authentication;
  /**
   * The error because of which the server serves nobody, such as a secret that is not set. Creating a server does not
   * throw the error, because frameworks load the server's module while they build an app, without the secrets of
   * production.
   */
  readonly unready?: Error;
  /** Starts the authentication, unless it has started. Rejects if it cannot be started. */
  startAuth?(): Promise<void>;
  /** Returns the path parameters. `undefined` if the server's path has no parameters. */
  readonly pathParams?: ReadPathParams;
  /** Whether a request in a revision with sessions must have a session id. */
  readonly requiresSession: boolean;
  /**
   * Time at which the server was created, in milliseconds since 1970. 0 if the server was created while a Worker starts,
   * because the clock of Workers shows 0 until the first request.
   */
  readonly createdAt: number;
  /** Whether HTTP responses can be event streams. */
  readonly streams: boolean;
  /**
   * Runs the `admit` option for a request. Returns a promise only if the option is asynchronous, or its code is not
   * loaded yet. If the option refuses the request, throws the error that the client receives.
   */
  readonly admit?: (request: Entering) => Promise<void> | undefined;
  /** Reports problems to the server's author. Set only in development. */
  development?: Development;
  /** State that all instances share. `undefined` if the server has no store. */
  readonly shared?: SharedState;
}
