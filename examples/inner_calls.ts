// A tool that calls other tools, a prompt and a resource of its server, as its caller: it plans a trip with the tools
// that the caller could call, and books it only after the user agrees.
import { createServer, prompt, resource, tool, ToolError } from "@x/mcp";
import { confirm, quota } from "@x/mcp/layers";
import { z } from "zod";

const city = z.object({ city: z.string() });

const flights = tool({
  name: "find_flight",
  title: "Find a flight",
  description: "Finds the cheapest flight to a city",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
  input: city,
  output: z.object({ flight: z.string(), price: z.number() }),
  use: [quota({ rate: { calls: 60, perMs: 60_000 } })], // Inner calls count too.
  run: ({ city }) => ({ flight: `XM ${100 + city.length}`, price: 90 + city.length }),
});

const hotels = tool({
  name: "find_hotel",
  title: "Find a hotel",
  description: "Finds a hotel in a city",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: true },
  input: city,
  output: z.object({ hotel: z.string(), price: z.number() }),
  run: ({ city }) => {
    if (city === "Atlantis") throw new ToolError(`There is no hotel in ${city}.`);
    return { hotel: `Hotel ${city}`, price: 60 };
  },
});

const book = tool({
  name: "book",
  title: "Book a flight",
  description: "Books a flight",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  input: z.object({ flight: z.string() }),
  use: [confirm(({ flight }) => `Book ${flight}?`)],
  run: ({ flight }) => `${flight} is booked.`,
});

const rules = resource({ uri: "trip://rules", name: "rules", read: () => "Hand luggage only." });

const summary = prompt({
  name: "summary",
  input: z.object({ city: z.string(), price: z.string() }),
  run: ({ city, price }) => `Summarize a trip to ${city} for ${price} euros in one sentence.`,
});

const plan = tool({
  name: "plan_trip",
  title: "Plan a trip",
  description: "Plans a trip to a city, and books the flight if the user agrees",
  annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
  input: city,
  async run({ city }, ctx) {
    // The results have the types of the output schemas. A tool that fails throws a ToolError with its content.
    const [{ flight, price }, { hotel }] = await Promise.all([
      ctx.callTool(flights, { city }),
      ctx.callTool(hotels, { city }),
    ]);
    const [{ text }] = await ctx.readResource("trip://rules");
    const { messages } = await ctx.getPrompt(summary, { city, price: `${price}` });
    // The question of `confirm` reaches the user. If the user declines, the trip is only planned.
    const booked = await ctx.callTool(book, { flight }, { raw: true });
    return [
      `${flight}, ${hotel}. ${text}`,
      booked.isError ? "Not booked." : "Booked.",
      ...messages.map(({ content }) => content),
    ];
  },
});

// Lists what this caller can call, which differs between callers if handlers have `allow`.
const help = tool({
  name: "help",
  title: "Help",
  description: "Lists the tools for trips",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  run: async (_input, ctx) =>
    (await ctx.list("tools")).map(({ name, description }) => `${name}: ${description}`).join("\n"),
});

export default createServer({
  name: "trips",
  version: "1.0.0",
  handlers: [flights, hotels, book, rules, summary, plan, help],
});
