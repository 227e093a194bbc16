// An instance of a multi-tenant server whose calls end only when a test ends them.
import { createServer, type Server, type ServerOptions, tool } from "../../mod.ts";
import type { StoreEvent } from "../../src/core/call/observer.ts";
import { type Connection, connectTest, type ConnectTestOptions, McpError } from "../../src/testing/testing.ts";
import type { Store } from "../../src/stores/stores.ts";
import { z } from "zod";

/** A call that runs until the test ends it. */
export interface HeldCall {
  /** Ends the call, and waits for its response. */
  end(): Promise<void>;
}

/** One of several instances that share their per-tenant limits. */
export interface TenantInstance extends AsyncDisposable {
  readonly server: Server;
  /** The store events that the observer received. */
  readonly events: StoreEvent[];
  /** The number of calls whose handlers are running. */
  running: number;
  /** The maximum of `running` since a test last reset this field. */
  peak: number;
  /** Starts a call. Returns the error that the client gets if the server refuses the call. */
  hold(tenant: string, size?: number): Promise<HeldCall | McpError>;
  /**
   * Calls the tool `quick`, which ends immediately, or `work`, which ends after 20 ms. Returns `false` if the server
   * refuses the call.
   */
  call(name: "quick" | "work", tenant: string): Promise<boolean>;
}

/** The era and the transport of all calls. */
export type Way = Pick<ConnectTestOptions, "era" | "transport">;

/** Starts an instance with per-tenant limits, which the instances share through the store. */
export function startTenantInstance(
  store: Store,
  perTenant: { readonly running?: number; readonly bytes?: number },
  { way = {}, ...options }: Partial<ServerOptions> & { readonly way?: Way } = {},
): TenantInstance {
  const clients = new Map<string, Promise<Connection>>();
  const held = new Map<string, { readonly started: () => void; readonly until: Promise<void> }>();
  const hold = tool({
    name: "hold",
    input: z.object({ id: z.string(), text: z.string() }),
    async run({ id }) {
      held.get(id)?.started();
      await held.get(id)?.until;
      return "done";
    },
  });
  const quick = tool({ name: "quick", run: () => "done" });
  const work = tool({
    name: "work",
    async run() {
      instance.peak = Math.max(instance.peak, ++instance.running);
      // Fixed wait: a tool that takes a fixed time.
      await new Promise((resolve) => setTimeout(resolve, 20));
      instance.running--;
      return "done";
    },
  });
  const events: StoreEvent[] = [];
  const server: Server = createServer({
    name: "tenants",
    version: "1.0.0",
    secret: "a secret of at least thirty-two characters",
    path: "/:tenant/mcp",
    handlers: [hold, quick, work],
    observer: { store: (event) => void events.push(event) },
    ...options,
    limits: { calls: { closeMs: 50 }, ...options.limits, perTenant: { ...perTenant, shared: true } },
    store,
  });
  async function connect(tenant: string): Promise<Connection> {
    const client = clients.get(tenant) ??
      connectTest(server, {
        ...way,
        ...(way.transport === "http" ? { path: `/${tenant}/mcp` } : { params: { tenant } }),
      });
    clients.set(tenant, client);
    return await client;
  }
  const instance: TenantInstance = {
    server,
    events,
    running: 0,
    peak: 0,
    async hold(tenant, size = 1) {
      const [ended, entered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const id = crypto.randomUUID();
      held.set(id, { started: entered.resolve, until: ended.promise });
      const done = (await connect(tenant)).callTool("hold", { id, text: "x".repeat(size) }).then(() => {}, toMcpError);
      const refused = await Promise.race([done, entered.promise]);
      if (refused) return refused;
      return {
        async end() {
          ended.resolve();
          await done;
        },
      };
    },
    async call(name, tenant) {
      const refused = await (await connect(tenant)).callTool(name).then(() => {}, toMcpError);
      return !refused;
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      for (const client of clients.values()) await (await client).close().catch(() => {}); // Closing may fail, because the server is already closed.
    },
  };
  return instance;
}

/** Returns the error of a refused call. Throws any other error. */
function toMcpError(error: unknown): McpError {
  if (error instanceof McpError) return error;
  throw error;
}

/** Returns a running call. Throws if the call was refused. */
export function toHeld(call: HeldCall | McpError): HeldCall {
  if (call instanceof McpError) throw call;
  return call;
}
