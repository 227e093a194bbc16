/**
 * What the parts of a proxy know of each other.
 */
import type { ToolError } from "../core/protocol/errors.ts";
import type { Params, Result } from "../core/protocol/jsonrpc.ts";
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../core/protocol/listed.ts";
import type { ServerInfo } from "../client/protocol.ts";
import type { RequestOptions } from "../client/rpc.ts";
import type { Context } from "../library.ts";
import type { ServerHandle, ServerStores } from "../server/engine/server_handle.ts";
import type { ChangingList, Connection } from "./connection.ts";
import type { Settings } from "./settings.ts";

export const KINDS = ["tools", "prompts", "resources", "resourceTemplates"] as const;

/** A list, by the member of its pages. */
export type Kind = typeof KINDS[number];

/** The server behind a proxy, as its scopes and lists see it. */
export interface UpstreamParts {
  readonly settings: Settings;
  /** Distinguishes the proxy from other proxies that a request passes. */
  readonly id: string;
  readonly server: ServerHandle;
  readonly store: Promise<ServerStores | undefined>;
  /** Subscribes to the resources to whose changes callers subscribe, and which the lists of a scope contain. */
  follow(scope: ScopeParts): void;
  /** Announces a change of a resource to the subscribers of a caller, or of all callers. */
  updated(uri: string, caller: string | object | undefined): void;
  /** Adds the instructions of a server to those of this server, if the author wants it. */
  learn(facts: ServerInfo): void;
  /** Makes room for a connection. Throws words for the model if there is none. */
  reserve(scope: ScopeParts): Promise<void>;
  /** Counts a list. */
  keep(list: Forgettable, characters: number): void;
  release(list: Forgettable): void;
  /** Notes the names of a list that all callers share. */
  claim(kind: Kind, keys: readonly string[]): void;
  /** Returns the words for a request that has not reached the server. */
  toDown(cause: unknown): ToolError;
  /** Returns the words for a call whose result is lost. */
  toLost(cause: unknown): ToolError;
}

export interface Forgettable {
  /** Forgets the list, because other lists need the room. */
  forget(): void;
}

/** The connection of all callers, or of one caller. */
export interface ScopeParts {
  /** The caller to whom the scope belongs. `undefined` if it belongs to all callers. */
  readonly caller?: string | object;
  /** The client of the caller, whose share of the connections the scope takes. */
  readonly client?: string | object;
  /** Whether the connection is open. */
  readonly isOpen: boolean;
  /** Whether the server announces changes of a list. */
  announces(list: ChangingList): boolean;
  /** Whether the known lists contain a resource, or a template of it. */
  serves(uri: string): boolean;
  /** Subscribes to changes of a resource, also after the connection was lost. */
  watch(uri: string): Promise<void>;
  /** Returns the open connection, or opens one. Throws words for the model if the server cannot be reached. */
  connect(ctx: Context | undefined): Promise<Connection>;
  /**
   * Sends a request, over a new connection if there is none. A request that may have reached the server is sent again only
   * if `isRepeatable`.
   */
  request(method: string, params: Params, options: RequestOptions, how: RequestFacts): Promise<Result>;
}

export interface RequestFacts {
  readonly ctx: Context | undefined;
  readonly isRepeatable: boolean;
}

/** An entry of any kind. */
export type Entry = ListedTool & ListedPrompt & ListedResource & ListedTemplate;

/** An entry of the other server. */
export interface KeptEntry {
  /** The name for callers, or the URI or template. */
  readonly key: string;
  /** The name of the other server. */
  readonly name: string;
  /** The entry for callers. */
  readonly listed: Entry;
  /** The scope whose connection serves the entry. */
  readonly scope: ScopeParts;
}
