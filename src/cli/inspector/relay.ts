/**
 * Connects the page to other servers. Only the page may use the relay, because the relay sends requests from this
 * machine to any server, and to the processes of commands.
 */
import type { Params } from "../../client/client.ts";
import { isObject } from "../../core/kit/json.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { EventStream, SAFE } from "./event_stream.ts";
import type { FaultBook } from "./fault_book.ts";

/** The server named on the command line. */
export interface NamedServer extends Pick<ConnectionOptions, "target" | "headers" | "args"> {
  /** The server as the user wrote it. */
  readonly name: string;
}

/** HTTP and protocol headers that users cannot set. */
const RESERVED =
  /^(host|connection|content-.*|transfer-encoding|keep-alive|upgrade|te|trailer|expect|accept|mcp-.*|proxy-.*|sec-.*|origin|last-event-id)$/;

class RelayError extends Error {
  readonly status: number;

  constructor(status: number, problem: string) {
    super(`Cannot serve the page: ${problem}`);
    this.status = status;
  }
}

export class Relay {
  /** The secret key that each request from the page must contain. */
  readonly key: string = `${crypto.randomUUID()}${crypto.randomUUID()}`.replaceAll("-", "");
  readonly #server: NamedServer | undefined;
  readonly #faults: FaultBook | undefined;
  readonly #connections = new Map<string, Connection>();

  constructor(server: NamedServer | undefined, faults?: FaultBook) {
    this.#server = server;
    this.#faults = faults;
  }

  /** Handles a request from this machine. `action` is the path after the relay's prefix. */
  async respond(request: Request, action: string): Promise<Response> {
    try {
      checkRequest(request, this.key);
      return await this.#handle(request, action);
    } catch (error) {
      if (!(error instanceof RelayError)) throw error;
      return Response.json({ problem: error.message }, { status: error.status, headers: SAFE });
    }
  }

  /** Closes all connections, and ends the processes of commands. */
  async close(): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }

  async #handle(request: Request, action: string): Promise<Response> {
    const body: unknown = await request.json().catch(() => undefined);
    if (!isObject(body)) throw new RelayError(400, "the body is not a JSON object");
    if (action === "connect") return this.#connect(body, request.signal);
    if (action === "server") return this.#describeServer();
    if (action === "fault") return Response.json({ text: this.#faults?.find(body.id) }, { headers: SAFE });
    const connection = this.#connections.get(request.headers.get("x-inspector-connection") ?? "");
    if (!connection) throw new RelayError(404, "the connection does not exist");
    if (action === "send") {
      const stream = new EventStream(request.signal);
      void connection.send(body, stream);
      return stream.response;
    }
    if (action !== "answer" || typeof body.key !== "string") throw new RelayError(404, "the path does not exist");
    connection.answer(body.key, body.result);
    return Response.json({}, { headers: SAFE });
  }

  /** The page does not contain the description, because any user of this machine can load the page. */
  #describeServer(): Response {
    const server = this.#server;
    const facts = server ? { name: server.name, hasHeaders: typeof server.target === "string" } : {};
    return Response.json(facts, { headers: SAFE });
  }

  /** Connects to a server. The connection stays open while the page reads the stream. */
  #connect(body: Params, gone: AbortSignal): Response {
    const { capabilities, revision } = body;
    const target = readTarget(body, this.#server);
    const events = new EventStream(gone);
    const id = crypto.randomUUID();
    const connection = new Connection({
      ...target,
      capabilities: isObject(capabilities) ? capabilities : {},
      revision: typeof revision === "string" && revision ? revision : undefined,
      events,
    });
    // Register the connection before it is open, because the server may send requests before then, and the page's
    // responses must find the connection.
    this.#connections.set(id, connection);
    events.send({ kind: "opening", id });
    events.signal.addEventListener("abort", () => {
      this.#connections.delete(id);
      void connection.close();
    }, { once: true });
    void connection.open();
    return events.response;
  }
}

/**
 * Checks that a request comes from the page. Pages from other origins cannot read the key, and cannot send the key's
 * header without a CORS preflight. Pages that use DNS rebinding send a different Host header.
 *
 * @throws {RelayError} if the request does not come from the page.
 */
function checkRequest({ method, headers }: Request, key: string): void {
  const site = headers.get("sec-fetch-site") ?? "same-origin";
  if (headers.get("origin") !== `http://${headers.get("host")}` || site !== "same-origin") {
    throw new RelayError(403, "the request does not come from the inspector's page");
  }
  if (method !== "POST" || !/^application\/json\b/i.test(headers.get("content-type") ?? "")) {
    throw new RelayError(403, "the request is not a POST request with JSON");
  }
  if (headers.get("x-inspector-key") !== key) {
    throw new RelayError(403, "the key is wrong; open the link that the terminal shows");
  }
}

/**
 * Returns the URL entered in the page, or the server named on the command line.
 *
 * @throws {RelayError} if there is no server, or if the URL or a header is not allowed.
 */
function readTarget({ url, headers: given }: Params, server: NamedServer | undefined): Omit<NamedServer, "name"> {
  const headers = readHeaders(given);
  if (url === undefined) {
    if (!server) throw new RelayError(400, "the command line names no server");
    return { target: server.target, headers: { ...server.headers, ...headers }, args: server.args };
  }
  if (typeof url !== "string" || !URL.canParse(url)) throw new RelayError(400, "the URL is not valid");
  const { protocol, username, password } = new URL(url);
  if (protocol !== "http:" && protocol !== "https:") {
    throw new RelayError(400, "the URL must begin with http:// or https://");
  }
  if (username || password) {
    throw new RelayError(400, "the URL contains a user name or password; send the credentials in a header");
  }
  return { target: url, headers };
}

function readHeaders(given: unknown): Readonly<Record<string, string>> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(isObject(given) ? given : {})) {
    if (RESERVED.test(name.toLowerCase())) {
      throw new RelayError(400, `the inspector sets the header ${name} itself; remove the header`);
    }
    try {
      headers.set(name, String(value));
    } catch {
      throw new RelayError(400, `the header ${name} contains characters that are not allowed in a header`);
    }
  }
  return Object.fromEntries(headers);
}
