/**
 * Options and services that all parts of one server share.
 *
 * @module
 */
import type { Implementation } from "../protocol/types.ts";
import type { Authentication } from "./auth.ts";
import type { CallerWatch } from "./call/caller_watch.ts";
import type { ClientFacts, ReadRoute } from "./call/context.ts";
import type { Development } from "./call/development.ts";
import type { Link } from "./call/link.ts";
import type { RequestReport } from "./call/observer.ts";
import type { SessionOptions } from "./call/session_data.ts";
import type { SharedState } from "./store.ts";
import type { FeatureParts } from "./visibility/feature_parts.ts";

/** A request before the server looks up its handler. */
export interface Entering {
  readonly method: string;
  readonly link: Link;
  readonly client: ClientFacts;
  readonly route?: ReadRoute;
  readonly observed?: RequestReport;
}

/** Options and services that all parts of one server share. */
export interface Core extends FeatureParts, SessionOptions {
  readonly identity: Implementation;
  readonly instructions?: string;
  /** The callers of open streams. */
  readonly callers: CallerWatch;
  /** Authenticates callers over HTTP. */
  readonly auth?: Authentication;
  /** Returns the parameters of the concrete path. `undefined` if the path has no parameters. */
  readonly route?: ReadRoute;
  /** Whether requests of revisions with sessions must have a session id. */
  readonly requiresSession: boolean;
  /** Decides whether a request may enter. Throws the error for the client if it may not. */
  readonly admit?: (request: Entering) => Promise<void>;
  /** Reports problems to the author. Set only in development. */
  development?: Development;
  /** State that all instances share. `undefined` if the server has no store. */
  readonly shared?: SharedState;
}
