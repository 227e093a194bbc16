/**
 * A generation of the protocol, and what it works with.
 *
 * @module
 */
import type { Incoming } from "../protocol/jsonrpc.ts";
import type { Accounts } from "./account.ts";
import type { Changes } from "./changes.ts";
import type { CallHost } from "./call.ts";
import type { Core } from "./core.ts";
import type { Link, Reply } from "./link.ts";
import type { Registry } from "./registry.ts";
import type { Scheduler } from "./scheduler.ts";

/** What an era works with. */
export interface Engine {
  readonly core: Core;
  readonly registry: Registry;
  readonly scheduler: Scheduler;
  readonly changes: Changes;
  readonly accounts: Accounts;
  readonly host: CallHost;
}

/** A generation of the protocol: turns a message into a call, and the outcome of the call into a reply. */
export interface Era {
  accept(message: Incoming, link: Link): Reply | Promise<Reply>;
  /** Opens a stream that no request asked for; the reply ends it. */
  attach?(link: Link): Reply | Promise<Reply>;
  /** Ends what `attach` and the like hold. */
  detach?(link: Link): Reply | Promise<Reply>;
}

/** Makes an era. */
export type CreateEra = (engine: Engine) => Era;
