// An extension with which a slow tool responds at once with a ticket. The client exchanges the ticket for the result.
import { type Context, extension, McpError, type Result } from "@x/mcp";
import type { Layer } from "@x/mcp/layers";
import { z } from "zod";

/** The results, by ticket. Each result belongs to the caller who started the work. */
const open = new Map<string, { owner?: string; result: Promise<Result> }>();

function find(ticket: string, { principal }: Context): Promise<Result> | undefined {
  const found = open.get(ticket);
  return found && found.owner === principal?.id ? found.result : undefined;
}

export const tickets = extension({
  id: "com.example/tickets",
  methods: {
    "tickets/redeem": {
      params: z.object({ ticket: z.string() }),
      subject: "ticket",
      async run({ ticket }, ctx) {
        const result = find(ticket, ctx);
        if (!result) throw McpError.invalidParams("Unknown ticket");
        return { value: await result };
      },
    },
  },
  listen: {
    tickets: { filter: z.array(z.string()), grant: (all, ctx) => all.filter((ticket) => find(ticket, ctx)) },
  },
});

/** Creates a layer with which a tool responds with a ticket and continues to run. */
export function slow(timeoutMs: number): Layer {
  return tickets.layer({
    async around(call, next) {
      if (!call.declared) return await next();
      const ticket = crypto.randomUUID();
      const result = next({
        progress: (progress) => {
          tickets.publish("tickets", { topic: ticket, method: "notifications/tickets", params: { ticket, progress } });
        },
      });
      // Do not create a ticket for invalid input, or while a question is open.
      const isRunning = await Promise.race([call.untilRun().then(() => true), result.then(() => false)]);
      if (!isRunning || call.isAsking) return await result;
      call.detach({ timeoutMs }); // if `detach` throws, the call fails without a ticket
      open.set(ticket, { owner: call.ctx.principal?.id, result });
      setTimeout(() => open.delete(ticket), timeoutMs);
      return call.result("ticket", { ticket });
    },
  });
}
