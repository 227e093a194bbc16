/**
 * The types that the parts of a proxy share.
 */
import type { ToolError } from "../core/protocol/errors.ts";
import type { Params, Result } from "../core/protocol/jsonrpc.ts";
import type { ListedPrompt, ListedResource, ListedTemplate, ListedTool } from "../core/protocol/listed.ts";
import type { ServerInfo } from "../client/protocol.ts";
import type { RequestOptions } from "../client/rpc.ts";
import type { Context } from "../library.ts";
import type { Account, Holding, Pot } from "../server/capacity/account.ts";
import type { ServerHandle, ServerStores } from "../server/engine/server_handle.ts";
import type { ChangingList, Connection } from "./connection.ts";
import type { Settings } from "./settings.ts";

export const KINDS = ["tools", "prompts", "resources", "resourceTemplates"] as const;

/** A list, named after the member of its pages. */
export type Kind = typeof KINDS[number];

/** The server behind a proxy, as its scopes and lists see it. */
export interface UpstreamParts {
  readonly settings: Settings;
  /** Distinguishes the proxy from other proxies that a request passes. */
  readonly id: string;
  /** Distinguishes the pots of the proxy from those of other proxies of the server. */
  readonly potName: string;
  readonly server: ServerHandle;
  readonly store: Promise<ServerStores | undefined>;
  /** Subscribes to the resources in the lists of a scope that callers have subscribed to. */
  follow(scope: ScopeParts): void;
  /** Announces a change of a resource to the subscribers of a caller, or of all callers. */
  updated(uri: string, caller: string | object | undefined): void;
  /** Adds the instructions of a server to those of this server, if the author wants it. */
  learn(facts: ServerInfo): void;
  /**
   * Charges a connection to a client. `giveWay` closes the connection if it is idle. Throws a `ToolError` if there is no
   * room.
   */
  reserve(client: Client, giveWay: () => Promise<void> | undefined): Promise<Holding>;
  /** Counts the characters of a list. */
  keep(list: Forgettable, characters: number): void;
  release(list: Forgettable): void;
  /** Records the names of a list that all callers share. */
  claim(kind: Kind, keys: readonly string[]): void;
  /** Returns the error for a request that has not reached the server. */
  toDown(cause: unknown): ToolError;
  /** Returns the error for a call whose result is lost. */
  toLost(cause: unknown): ToolError;
}

export interface Forgettable {
  /** Forgets the list, to make room for other lists. */
  forget(): void;
}

/** The client of a caller, which can have several callers, such as sessions. */
export interface Client {
  readonly account: Account;
  readonly connections: Pot;
}

/** The connection of all callers, or of one caller. */
export interface ScopeParts {
  /** The caller to whom the scope belongs. `undefined` if it belongs to all callers. */
  readonly caller?: string | object;
  /** Whether the server announces changes of a list. */
  announces(list: ChangingList): boolean;
  /** Whether the known lists contain a resource, or a template of it. */
  serves(uri: string): boolean;
  /** Subscribes to changes of a resource, and again after each reconnect. */
  watch(uri: string): Promise<void>;
  /** Returns the open connection, or opens one. Throws an error for the model if the server cannot be reached. */
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
