/**
 * The interface that the protocols of both eras implement.
 *
 * @module
 */
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation, LogLevel } from "../protocol/types.ts";
import type { ClientExtension } from "./extension.ts";
import type { Notification } from "./message.ts";
import type { Outcome, SentRequestOptions } from "./rpc.ts";
import type { SubscriptionFilter, Watch } from "./subscription.ts";

/** The server, and the protocol revision in use. */
export interface ServerFacts {
  /** `"modern"` if each request describes its client, or `"legacy"` if client and server have a handshake. */
  readonly era: "modern" | "legacy";
  /** The protocol revision, such as `2026-07-28`. */
  readonly version: string;
  /** The name and version of the server, as the server states them. They are not verified. */
  readonly info?: Implementation;
  /** The capabilities of the server. */
  readonly capabilities: Params;
  /** Instructions for a model that uses the server. */
  readonly instructions?: string;
}

/** The protocol of one era on one connection. */
export interface Protocol {
  readonly server: ServerFacts;
  /** The session id, over HTTP. */
  readonly sessionId?: string;
  /** The result of the handshake, if there was one. */
  readonly handshake?: Result;
  request(method: string, params: Params, options?: SentRequestOptions): Promise<Outcome>;
  /** Subscribes to changes. Calls `onChange` with each notification. */
  watch(filter: SubscriptionFilter, onChange: (notification: Notification) => void): Promise<Watch>;
  setLogLevel(level: LogLevel): Promise<void>;
  /** Sends a notification. */
  notify(method: string, params?: Params): Promise<void>;
  /** Ends the subscriptions and the session. */
  close(): Promise<void>;
}

/** How the client describes itself. */
export interface ClientIdentity {
  readonly info: Implementation;
  readonly capabilities: ClientCapabilities;
  /** The least severe log level that the client wants. */
  readonly logLevel?: LogLevel;
  /** The extensions that `capabilities` declares and that the client implements itself. */
  readonly extensions?: readonly ClientExtension[];
}

/** The options that the protocols of both eras have. */
export interface ProtocolOptions extends ClientIdentity {
  /** Called with each problem that the client works around. */
  readonly onWarning: (text: string) => void;
  /** Whether to recover from a lost stream, a lost session, or a refused protocol revision. Tests switch this off. */
  readonly recovers: boolean;
}

/** Reads the name and version of a server. Returns `undefined` if the name or the version is missing. */
export function toImplementation(info: unknown): Implementation | undefined {
  if (!isObject(info)) return;
  const { name, version } = info;
  return typeof name === "string" && typeof version === "string" ? { ...info, name, version } : undefined;
}
