// Runs a test of a proxy in the four pairs of eras. A caller over HTTP reaches a server over HTTP, and a caller over
// stdio pipes reaches a server over a pipe, which a command uses too.
import { createServer, type Params, type Server, type ServerOptions } from "../../mod.ts";
import type { Client } from "../../src/client/client.ts";
import { proxy, type ProxyOptions } from "../../src/proxy/proxy.ts";
import type { ConnectTestOptions } from "../../src/testing/testing.ts";
import { behaviour, type BehaviourOptions, type Fixture } from "../support/behaviour.ts";

export type Era = "modern" | "legacy";

const REVISIONS = { modern: ["2026-07-28"], legacy: ["2025-11-25"] } as const;

export interface Pair {
  /** The era of the caller. */
  readonly era: Era;
  /** The era of the server behind the proxy. */
  readonly behind: Era;
  readonly transport: "http" | "pipe";
}

export interface PairOptions {
  /** The server behind the proxy. */
  readonly upstream?: Partial<ServerOptions>;
  readonly proxy?: ProxyOptions;
  /** The server with the proxy. */
  readonly server?: Partial<ServerOptions>;
  readonly client?: ConnectTestOptions;
}

export interface PairFixture extends Fixture {
  readonly upstream: Server;
}

/** Creates a server of an era. */
export function createUpstream(behind: Era, options: Partial<ServerOptions> = {}): Server {
  return createServer({ name: "upstream", version: "1.0.0", revisions: REVISIONS[behind], ...options });
}

/** Returns a proxy of a server in this process: over HTTP, or over a pipe. */
export function proxyOf(upstream: Pick<Server, "fetch">, transport: "http" | "pipe", options: ProxyOptions = {}) {
  if (transport === "pipe") return proxy(upstream as Server, { name: "up", ...options });
  const fetch = async (request: Request) => await upstream.fetch(request);
  return proxy("http://localhost/mcp", { name: "up", fetch, ...options });
}

/** A server without sessions that answers with any result, error or response. */
export function forge(answer: (method: string, params: Params, request: Request) => unknown) {
  return async (request: Request): Promise<Response> => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = await request.clone().json();
    if (id === undefined) return new Response(null, { status: 202 });
    const discovered = {
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: {}, prompts: {}, resources: {} },
      ttlMs: 0,
      cacheScope: "private",
    };
    const found = method === "server/discover" ? discovered : await answer(method, params, request);
    if (found instanceof Response) return found;
    const { error, ...result } = Object(found ?? { error: { code: -32601, message: "no such method" } });
    return Response.json({ jsonrpc: "2.0", id, ...error ? { error } : { result } });
  };
}

/** The list of tools of a forged server. */
export const listed = (...names: readonly string[]) => ({
  resultType: "complete",
  tools: names.map((name) => ({ name, inputSchema: { type: "object" } })),
  ttlMs: 60_000,
  cacheScope: "public",
});

/** The result of a call of a caller without a session: questions, or content. */
export interface Round {
  readonly resultType: string;
  readonly inputRequests: Record<string, unknown>;
  readonly requestState: unknown;
  readonly content: readonly unknown[];
}

/** Calls a tool for a caller without a session, and returns the questions instead of answering them. */
export async function callRound(client: Pick<Client, "request">, name: string, params: Params = {}): Promise<Round> {
  const sent = { name, arguments: {}, ...params };
  return await client.request("tools/call", sent, { rounds: false }) as unknown as Round;
}

/** Returns the params that answer all questions of a round. */
export function answerAll(
  { inputRequests, requestState }: Round,
  answer: unknown = { action: "accept", content: {} },
): Params {
  const answers = Object.keys(inputRequests).map((key) => [key, answer]);
  return { inputResponses: Object.fromEntries(answers), requestState };
}

/** Registers a test for each pair of eras and each transport. */
export function pairs(
  name: string,
  run: (join: (options?: PairOptions) => Promise<PairFixture>, pair: Pair) => Promise<void>,
  { behind: eras = ["modern", "legacy"], ...options }: BehaviourOptions & { readonly behind?: readonly Era[] } = {},
): void {
  for (const behind of eras) {
    behaviour(`${name}, in front of ${behind}`, async (connect, { era, transport }) => {
      await using stack = new AsyncDisposableStack();
      const pair = { era, behind, transport: transport === "http" ? "http" : "pipe" } as const;
      await run(async ({ upstream: given, proxy: own, server: around, client } = {}) => {
        const upstream = createUpstream(behind, given);
        stack.defer(() => upstream.close());
        const { handlers = [], ...rest } = around ?? {};
        const fixture = await connect(
          { ...rest, handlers: [...handlers, proxyOf(upstream, pair.transport, own)] },
          client,
        );
        stack.defer(() => fixture.server.close());
        return { ...fixture, upstream };
      }, pair);
    }, { transports: ["http", "pipe"], perInstance: "services", ...options });
  }
}
