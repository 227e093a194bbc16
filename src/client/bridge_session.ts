/**
 * A bridge's session with a server of a revision before 2026-07-28, and the state to restore if the session must be
 * replaced.
 */
import { BoundedMap } from "../core/kit/bounded_map.ts";
import { METHOD_NOT_FOUND } from "../core/protocol/errors.ts";
import { isObject } from "../core/protocol/jsonrpc.ts";
import type { SendResult } from "./channel.ts";
import type { Message } from "./message.ts";

/** Maximum number of resource subscriptions that a new session restores. */
const MAX_SUBSCRIPTIONS = 1000;

export class BridgeSession {
  /** The client's `initialize` request, which the bridge sends again to begin a new session. */
  readonly initialize: Message;
  /** `undefined` if the server did not send an id. */
  readonly id: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The kinds of lists whose changes the server announces, such as `tools`. */
  readonly changingLists: readonly string[];
  readonly #over = new AbortController();
  #level: Message | undefined;
  readonly #subscriptions = new BoundedMap<unknown, Message>({ full: "refuse", max: MAX_SUBSCRIPTIONS });

  constructor(initialize: Message, { result }: Message, headers: Headers | undefined) {
    const { protocolVersion, capabilities } = isObject(result) ? result : {};
    const version = typeof protocolVersion === "string" ? protocolVersion : "";
    const declared = isObject(capabilities) ? capabilities : {};
    this.initialize = initialize;
    this.id = headers?.get("mcp-session-id") ?? undefined;
    this.headers = {
      ...this.id === undefined ? {} : { "mcp-session-id": this.id },
      ...version >= "2025-06-18" ? { "mcp-protocol-version": version } : {},
    };
    this.changingLists = ["tools", "resources", "prompts"].filter((kind) => {
      const capability = declared[kind];
      return isObject(capability) && capability.listChanged === true;
    });
  }

  /** Aborts when the session is lost. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Whether the server no longer knows the session. */
  get isLost(): boolean {
    return this.#over.signal.aborted;
  }

  markLost(): void {
    this.#over.abort();
  }

  /** Tests whether a response shows that the server no longer knows the session. If so, marks the session as lost. */
  isLostBy({ status, message }: SendResult): boolean {
    const isLost = status === 404 && this.id !== undefined && message?.error?.code !== METHOD_NOT_FOUND;
    if (isLost) this.markLost();
    return isLost;
  }

  /** Remembers a successful request that sets the log level or changes the resource subscriptions. */
  remember(message: Message, { error }: Message): void {
    const { method, params } = message;
    if (error) return;
    if (method === "logging/setLevel") this.#level = message;
    if (method === "resources/unsubscribe") this.#subscriptions.delete(params?.uri);
    if (method === "resources/subscribe") this.#subscriptions.set(params?.uri, message);
  }

  /** The requests that restore the log level and the subscriptions of this session in a new session. */
  get settings(): readonly Message[] {
    return [...this.#level ? [this.#level] : [], ...this.#subscriptions.values()];
  }
}
