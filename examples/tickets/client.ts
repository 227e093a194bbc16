// The client extension, which exchanges a ticket for the final result.
import { clientExtension } from "@x/mcp/client";
import { z } from "zod";

const redeemed = z.object({ value: z.record(z.string(), z.unknown()) });

export const tickets = clientExtension({
  id: "com.example/tickets",
  subjects: { "tickets/redeem": "ticket" },
  results: {
    ticket: {
      schema: z.object({ ticket: z.string() }),
      finish: async ({ ticket }, { request, signal }) =>
        redeemed.parse(await request("tickets/redeem", { ticket }, { signal })).value,
    },
  },
});
