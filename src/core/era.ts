/**
 * The interface of an era, a generation of the protocol.
 *
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import type { Accounts } from "./capacity/account.ts";
import type { Changes } from "./visibility/changes.ts";
import type { CallHost } from "./call/call.ts";
import type { Core } from "./core.ts";
import type { Link, Reply } from "./call/link.ts";
import type { Registry } from "./visibility/registry.ts";
import type { Visibility } from "./visibility/visibility.ts";
import type { Store } from "./store.ts";
import type { Scheduler } from "./scheduler.ts";

/** The parts of a server that an era uses. */
export interface Engine {
  readonly core: Core;
  readonly registry: Registry;
  /** The rules of `enable` and `disable`. */
  readonly visibility: Visibility;
  readonly scheduler: Scheduler;
  readonly changes: Changes;
  readonly accounts: Accounts;
  /** The concrete path as the name of a tenant, if the clients of a path are limited together. */
  readonly tenant?: string;
  readonly host: CallHost;
  /** The store of the server, for its extensions. */
  readonly store?: Store;
}

/** A generation of the protocol. It turns a message into a call, and the outcome of the call into a reply. */
export interface Era {
  accept(message: Incoming, link: Link): Reply | Promise<Reply>;
  /** Opens a stream outside of requests. The stream ends with the reply. */
  attach?(link: Link): Reply | Promise<Reply>;
  /** Ends the session or stream that `attach` opened. */
  detach?(link: Link): Reply | Promise<Reply>;
  /** Loads the code that is required for the first message. */
  load?(): Promise<void>;
  /** Frees the memory that is kept for idle clients. The clients can continue later. */
  rest?(): void;
}

/** Creates an era. */
export type CreateEra = (engine: Engine) => Era;
