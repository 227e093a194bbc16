/**
 * Admits the requests that open a WebSocket or an HTTP+SSE stream.
 */
import { isMcpError, toBusy } from "../../../core/protocol/errors.ts";
import type { CallerChecks } from "../../call/caller_watch.ts";
import type { ClientInfo, Principal } from "../../call/context.ts";
import { INTERNALS } from "../../../core/internals.ts";
import { toHints } from "../../call/link.ts";
import type { TransportName } from "../../call/observer.ts";
import { type Account, type Drop, Holding } from "../../capacity/account.ts";
import type { Served } from "../channel.ts";
import type { ConnectionInfo } from "./access.ts";
import type { Caller } from "./caller.ts";
import type { WayIn } from "./callers.ts";
import type { HttpEntry } from "./lazy_endpoint.ts";
import { findRefusal, type Refusal, refuseInText, toFault, toOverload } from "./refusals.ts";
import type { FindSpot, HttpParts, Spot } from "./upgrades.ts";

/** A server whose other HTTP transports, such as WebSocket, share its HTTP endpoint. */
export interface EntryServer extends Served {
  fetch(request: Request, info?: ConnectionInfo): Promise<Response>;
  readonly [INTERNALS]: Served[typeof INTERNALS] & { readonly http: HttpEntry; readonly find?: FindSpot };
}

export function toEntryServer(server: Served & Pick<EntryServer, "fetch">): EntryServer {
  // The cast is safe, because every server with a `fetch` has an HTTP endpoint. `Served` does not name its parts, because
  // clients would then import them.
  return server as EntryServer;
}

export interface EntryOptions extends Pick<WayIn, "path" | "isSimple"> {
  readonly transport: TransportName;
  readonly missing: Refusal;
}

export interface Entrant {
  readonly principal?: Principal;
  readonly account: Account;
  readonly peer?: string;
  /** The checks of the caller. Created before an upgrade, because a runtime may free the request after the upgrade. */
  readonly checks?: CallerChecks;
  /** The server to which the client connects: the server of the concrete path, if the server's path has parameters. */
  readonly served: Served;
  /** The charge in the pot of all streams. */
  readonly place: Holding;
  /** Closes the stream or socket, unless messages are unanswered. Without `drop`, the client keeps its place. */
  drop?: Drop;
}

/** A path next to the server's MCP endpoint. */
export class Entry {
  readonly #server: EntryServer;
  readonly #way: WayIn<Spot>;
  readonly #missing: Refusal;

  constructor(server: EntryServer, { missing, ...options }: EntryOptions) {
    const { path } = options;
    const { find } = server[INTERNALS];
    this.#server = server;
    this.#missing = missing;
    this.#way = {
      ...options,
      find: find && ((request, info) => find({ template: path, request, info })),
      refusePath: () => this.refuse(missing),
    };
  }

  /** Creates the response if the request or `serve` fails. */
  async fetch(
    request: Request,
    info: ConnectionInfo | undefined,
    serve: (caller: Caller<Spot>, parts: HttpParts) => Promise<Response>,
  ): Promise<Response> {
    const { core, endpoint } = this.#server[INTERNALS].http;
    let principal: Principal | undefined;
    try {
      const { parts } = await endpoint.load();
      const caller = await parts.callers.identify(request, info, this.#way);
      if (caller instanceof Response) return caller;
      ({ principal } = caller);
      return await serve(caller, parts);
    } catch (error) {
      const refusal = findRefusal(error);
      return refusal ? this.refuse(refusal, principal) : toFault(core, error);
    }
  }

  /** Calls `open` unless the client is refused. */
  async admit(caller: Caller<Spot>, parts: HttpParts, open: (entrant: Entrant) => Response): Promise<Response> {
    const { principal } = caller;
    const { transport } = this.#way;
    const served = caller.place ? await caller.place.open(caller) : this.#server;
    if (!served) return this.refuse(this.#missing, principal);
    const account = parts.account(caller);
    // Take the place before `admit` runs, so that the client's share of the streams limits the concurrent checks.
    const place = charge(account, transport, () => entrant.drop?.() ?? false);
    if (!(place instanceof Holding)) return this.refuse(place, principal);
    const checks = caller.seen?.toChecks?.(principal);
    const entrant: Entrant = { principal, account, peer: parts.peer(caller), checks, served, place };
    let response: Response | undefined;
    try {
      const refusal = await findEntryRefusal(served, caller, transport);
      // Check whether the server has started to close in the meantime, because a closing server would never close this
      // stream or socket.
      const refused = refusal ? this.refuse(refusal, principal) : parts.callers.refuseIfUnavailable(this.#way);
      return refused ?? (response = open(entrant));
    } finally {
      if (!response) place.end();
    }
  }

  refuse(refusal: Refusal, principal?: Principal): Response {
    return refuseInText(this.#server[INTERNALS].http.core, refusal, { transport: this.#way.transport, principal });
  }
}

/** Returns a refusal if a limit does not allow another one. */
function charge(account: Account, transport: TransportName, drop: Drop): Holding | Refusal {
  const thing = transport === "websocket" ? "socket" : "stream";
  const refuse = (state: string, limits: string) => toOverload(toBusy(`open the ${thing}: ${state}`, limits));
  // Reject further sockets of a client that is at its memory limit, because the size of a message is known only after
  // it has arrived.
  if (thing === "socket" && !account.hold(0)) {
    return refuse("too much memory is used", "memory.bytesPerClient, memory.bytes");
  }
  return account.openStream(drop) ??
    refuse("too many streams are open", "connections.streams, connections.streamsPerClient");
}

const NOBODY: ClientInfo = { version: "", capabilities: {} };

/** Returns the refusal of `admit`, if any. `served` is the server to which the caller connects. */
async function findEntryRefusal(
  served: Served,
  caller: Caller,
  transport: TransportName,
): Promise<Refusal | undefined> {
  const core = served[INTERNALS].served?.engine.core;
  if (!core?.admit) return;
  const { principal, seen = caller } = caller;
  try {
    await core.admit({
      method: "GET",
      link: { transport, principal, http: seen },
      client: NOBODY,
      pathParams: core.pathParams,
    });
  } catch (error) {
    const known = isMcpError(error) ? error : core.report(error);
    const { code, message } = known;
    const hints = toHints(known);
    return hints
      ? { message, code, status: hints.status ?? 403, headers: hints.headers, reason: "admission" }
      : { message, code, status: 500, reason: "fault" };
  }
}
