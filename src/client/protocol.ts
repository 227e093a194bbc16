/**
 * A client of one era at its end of a connection.
 *
 * @module
 */
import { isObject, type Params, type Result } from "../protocol/jsonrpc.ts";
import type { ClientCapabilities, Implementation, LogLevel } from "../protocol/types.ts";
import type { Notification } from "./message.ts";
import type { Outcome, RequestHandler, TestRequestOptions } from "./rpc.ts";
import type { Filter, Watch } from "./subscription.ts";

/** Who the server is, and what is spoken with it. */
export interface ServerFacts {
  /** `modern` if every request says who is asking, `legacy` if the two sides have shaken hands. */
  readonly era: "modern" | "legacy";
  /** The revision that is spoken, such as `2026-07-28`. */
  readonly version: string;
  /** What the server says of itself. Nobody has checked it. */
  readonly info?: Implementation;
  /** What the server can do, by feature. */
  readonly capabilities: Params;
  /** How to use the server, for a model. */
  readonly instructions?: string;
}

/** A client of one era. */
export interface Protocol {
  readonly server: ServerFacts;
  /** The session, if there is one with a name. */
  readonly sessionId?: string;
  /** What the handshake gave, if there was one. */
  readonly handshake?: Result;
  request(method: string, params: Params, options?: TestRequestOptions): Promise<Outcome>;
  /** Has `tell` called for every change that the filter lets through. */
  watch(filter: Filter, onChange: (notification: Notification) => void): Promise<Watch>;
  setLogLevel(level: LogLevel): Promise<void>;
  /** Ends what the server holds for this client. */
  close(): Promise<void>;
}

/** Who the client is. */
export interface ClientIdentity {
  readonly info: Implementation;
  readonly capabilities: ClientCapabilities;
  /** Least severe log message that it wants. */
  readonly logLevel?: LogLevel;
}

/** Who the client is, and how it speaks. */
export interface ProtocolOptions extends ClientIdentity {
  readonly answer: RequestHandler;
  /** Told of what goes wrong and is gone around. */
  readonly onWarning: (text: string) => void;
  /** Whether what was lost is taken up again: a stream, a session, a revision; a test wants to see it lost. */
  readonly recovers: boolean;
}

/** What a server says of itself, if it has a name and a version. */
export function toImplementation(info: unknown): Implementation | undefined {
  if (!isObject(info)) return;
  const { name, version } = info;
  return typeof name === "string" && typeof version === "string" ? { ...info, name, version } : undefined;
}
