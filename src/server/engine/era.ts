/**
 * The interface of an era. An era is the code that serves several similar protocol revisions.
 */
import type { Incoming } from "../../core/protocol/jsonrpc.ts";
import type { Accounts } from "../capacity/account.ts";
import type { Changes } from "../visibility/changes.ts";
import type { CallHost } from "../call/call.ts";
import type { Core } from "./core.ts";
import type { Link, Reply } from "../call/link.ts";
import type { Registry } from "../visibility/registry.ts";
import type { Visibility } from "../visibility/visibility.ts";
import type { Scheduler } from "./scheduler.ts";

export interface Engine {
  readonly core: Core;
  readonly registry: Registry;
  /** The rules that `enable` and `disable` have set. */
  readonly visibility: Visibility;
  readonly scheduler: Scheduler;
  readonly changes: Changes;
  readonly accounts: Accounts;
  /** The concrete path, which is the tenant's name in limits. Set if the server's path has parameters. */
  readonly tenant?: string;
  readonly host: CallHost;
}

/** Converts a message to a call, and the outcome of the call to a reply. */
export interface Era {
  accept(message: Incoming, link: Link): Reply | Promise<Reply>;
  /**
   * Opens a stream that does not respond to a request, such as for HTTP GET. The stream ends when the reply is sent.
   */
  attach?(link: Link): Reply | Promise<Reply>;
  /** Ends a session, or the stream that `attach` opened. */
  detach?(link: Link): Reply | Promise<Reply>;
  /** Loads the code that the first message requires. */
  load?(): Promise<void>;
  /** Evicts the state of idle clients from memory. These clients can continue with their next request. */
  evictIdle?(): void;
}

export type CreateEra = (engine: Engine) => Era;
