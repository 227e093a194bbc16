/**
 * The interface that the protocols of both eras implement.
 */
import { isObject, type Params, type Result } from "../core/protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation, LogLevel } from "../core/protocol/types.ts";
import type { ClientExtension } from "./extension.ts";
import type { Notification } from "./message.ts";
import type { Outcome, SentRequestOptions } from "./rpc.ts";
import type { SubscriptionFilter, Watch } from "./subscription.ts";

/** Facts about the server, and the protocol revision in use. */
export interface ServerInfo {
  /**
   * `"modern"` if each request contains the client's name and capabilities, or `"legacy"` if the connection began with
   * a handshake.
   */
  readonly era: "modern" | "legacy";
  /** The protocol revision, such as `2026-07-28`. */
  readonly version: string;
  /** The name and version that the server reports, without verification. */
  readonly info?: Implementation;
  /** The capabilities that the server declares. */
  readonly capabilities: Params;
  /** The server's instructions for models that use it. */
  readonly instructions?: string;
}

/** The protocol of one era on one connection. */
export interface Protocol {
  readonly server: ServerInfo;
  /** The session id. `undefined` without a session, and over transports other than HTTP. */
  readonly sessionId?: string;
  /** The result of the handshake, if there was one. */
  readonly handshake?: Result;
  request(method: string, params: Params, options?: SentRequestOptions): Promise<Outcome>;
  /** Subscribes to changes, and calls `onChange` with each notification of the subscription. */
  watch(filter: SubscriptionFilter, onChange: (notification: Notification) => void): Promise<Watch>;
  setLogLevel(level: LogLevel): Promise<void>;
  notify(method: string, params?: Params): Promise<void>;
  /** Ends all subscriptions and the session, but not the connection. */
  close(): Promise<void>;
}

export interface ClientIdentity {
  readonly info: Implementation;
  readonly capabilities: ClientCapabilities;
  /** The least severe level that the server should send. */
  readonly logLevel?: LogLevel;
  /** The extensions that the client implements. `capabilities` declares their settings. */
  readonly extensions?: readonly ClientExtension[];
}

export interface ProtocolOptions extends ClientIdentity {
  /** Called with the description of each problem that does not fail a request. */
  readonly onWarning: (text: string) => void;
  /** Whether to recover from a lost stream, a lost session, or a rejected protocol revision. `false` in tests. */
  readonly recovers: boolean;
}

/** Reads the facts about a server from its discovery or handshake. `info` is the part with its name and version. */
export function toServerInfo(
  { era, version, info }: Pick<ServerInfo, "era" | "version"> & { readonly info: unknown },
  { capabilities, instructions }: Result,
): ServerInfo {
  return {
    era,
    version,
    info: toImplementation(info),
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}

/** Reads the name and version of a server. Returns `undefined` if the name or the version is missing. */
function toImplementation(info: unknown): Implementation | undefined {
  if (!isObject(info)) return;
  const { name, version } = info;
  return typeof name === "string" && typeof version === "string" ? { ...info, name, version } : undefined;
}
