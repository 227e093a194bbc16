// A session on one or several instances whose requests have tokens of the same principal with different rights.
import { assert } from "@std/assert";
import { createServer, type Handler, type Middleware, type Server } from "../../mod.ts";
import type { Admit } from "../../src/server/engine/admission.ts";
import type { Observer } from "../../src/server/call/observer.ts";
import { memoryStore } from "../../src/stores/stores.ts";
import { LEGACY_VERSIONS, until } from "../support/behaviour.ts";
import { LATE_STREAMS, testLimits } from "../support/limits.ts";
import { toStatus } from "../support/requests.ts";
import { toHello, toSession, toSessionRequest } from "../support/sessions.ts";

/** The revisions with sessions over HTTP. */
export const VERSIONS = LEGACY_VERSIONS.filter((version) => version > "2025");

/** The revisions, each on one and on two instances. `place` tells them apart in the names of tests. */
export const PLACES = VERSIONS.flatMap((version) =>
  [1, 2].map((instances) => ({
    version,
    instances,
    place: `${version}, ${instances === 1 ? "one instance" : "two instances"}`,
  }))
);
export const INSUFFICIENT_SCOPE = -31_403;

/** A valid event id of no stream. */
export const UNKNOWN_EVENT = "01234567-0123_1";

export type Headers = Readonly<Record<string, string>>;

/** A token with all rights, and tokens of the same principal with fewer rights. */
export const FULL: Headers = { "x-scopes": "pay", "x-staff": "yes" };
export const NARROW: Headers = { "x-scopes": "mail", "x-staff": "yes" };
export const GUEST: Headers = { "x-scopes": "pay" };

/** A value that makes a principal impossible to compare. */
class Role {
  readonly name = "clerk";
}

/** The response to a refused request. */
export interface Refused {
  readonly status: number;
  readonly challenge: string | null;
  readonly error: unknown;
}

/** A session on one or several instances, which share a store. */
export interface Site {
  /** Sends a message to the first instance. */
  send(message: object | object[], token: Headers): Promise<Response>;
  /** Sends a message to the last instance. */
  sendLast(message: object | object[], token: Headers): Promise<Response>;
  /** Opens a standalone stream on the first instance. */
  open(token: Headers): Promise<Response>;
  /** Opens a standalone stream on the last instance. */
  openLast(token: Headers): Promise<Response>;
  /** Resumes a stream on the last instance. */
  resume(lastEvent: string, token: Headers): Promise<Response>;
  readonly first: Server;
  readonly last: Server;
}

export interface Setting {
  readonly version: string;
  readonly instances: number;
  readonly observer?: Observer;
  readonly admit?: Admit;
  readonly middleware?: readonly Middleware[];
}

/** Time at which the latest token was issued. Each request has a token of its own, as after a renewal. */
let issued = 0;

export async function withSite(
  { version, instances, observer = { fault() {} }, admit, middleware }: Setting,
  makeHandlers: () => readonly Handler[],
  use: (site: Site) => Promise<void>,
): Promise<void> {
  const store = memoryStore();
  const servers = Array.from({ length: instances }, () =>
    createServer({
      name: "bank",
      version: "1.0.0",
      handlers: makeHandlers(),
      // A stream that opens before its handler reads a resource can be resumed without the rights to this resource, until
      // the next event.
      limits: testLimits(LATE_STREAMS),
      observer,
      ...admit && { admit },
      ...middleware && { use: middleware },
      auth: ({ headers }: Request) => ({
        id: "ada",
        scopes: (headers.get("x-scopes") ?? "").split(" ").filter(Boolean),
        staff: headers.has("x-staff"),
        ...headers.has("x-odd") && { role: new Role() },
        ...headers.has("x-jti") && {
          claims: { jti: headers.get("x-jti"), iat: ++issued, uti: `u${issued}`, team: headers.get("x-team") ?? "red" },
          expiresAt: Date.now() + 1_000_000 + issued,
        },
      }),
      ...instances > 1 ? { store, secret: "a secret of at least thirty-two characters" } : {},
    }));
  let session = "";
  const fetch = async (server: Server, token: Headers, more: Headers, message?: object) =>
    await server.fetch(
      toSessionRequest(message, {
        ...session ? { "mcp-session-id": session, "mcp-protocol-version": version } : {},
        ...token,
        ...more,
      }),
    );
  const [first, last] = [servers[0], servers[instances - 1]];
  const site: Site = {
    first,
    last,
    send: (message, token) => fetch(first, token, {}, message),
    sendLast: (message, token) => fetch(last, token, {}, message),
    open: (token) => fetch(first, token, {}),
    openLast: (token) => fetch(last, token, {}),
    resume: (lastEvent, token) => fetch(last, token, { "last-event-id": lastEvent }),
  };
  session = await toSession(
    await site.send(toHello({ version, capabilities: { elicitation: {}, sampling: {} } }), FULL),
  );
  await use(site);
  for (const server of servers) await server.close();
}

export const request = (id: number, method: string, params: object) => ({
  jsonrpc: "2.0",
  id,
  method,
  params: { ...params, _meta: { progressToken: "p" } },
});
export const pay = request(2, "tools/call", { name: "pay", arguments: {} });

/** A stream that the test reads. */
export class Reading {
  text = "";
  isOver = false;

  constructor({ body }: Response) {
    const read = async () => {
      for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) this.text += part;
    };
    read().finally(() => this.isOver = true);
  }

  async until(part: string): Promise<string> {
    await until(() => this.text.includes(part), `the text ${part}`);
    return this.text;
  }

  /** The id of the last event. */
  get last(): string {
    return [...this.text.matchAll(/^id: ?(.*)$/gm)].at(-1)?.[1] ?? "";
  }
}

/** Sends a request that reports progress, and returns its stream after the first event. */
export async function begin(site: Site, message: object | object[]): Promise<Reading> {
  const stream = new Reading(await site.send(message, FULL));
  await stream.until(`"progress":1`);
  return stream;
}

/** Waits until the last instance finds a stream, which the first instance writes to the store in the background. */
export async function untilFound(site: Site, lastEvent: string, token = FULL): Promise<void> {
  await until(async () => {
    return await toStatus(site.resume(lastEvent, token)) === 200;
  }, "the last instance finds the stream");
}

export async function toRefused(response: Response): Promise<Refused> {
  const { status, headers } = response;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream");
  assert(!isStream, "the server has opened a stream");
  return { status, challenge: headers.get("www-authenticate"), error: JSON.parse(await response.text()).error };
}
