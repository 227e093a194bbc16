// Two tools with schemas from valibot and arktype instead of zod.
import { createServer, tool } from "@x/mcp";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";

const Order = v.object({
  item: v.pipe(v.string(), v.minLength(1), v.description("Name of the product")),
  count: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(20)), 1),
});

// For valibot, a separate package converts schemas to JSON Schema.
const order = tool({
  name: "order",
  title: "Order",
  description: "Orders a product",
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  input: toStandardJsonSchema(Order),
  run: ({ item, count }) => `Ordered ${count} × ${item.toUpperCase()}`,
});

const Route = type({ from: "string > 0", to: "string > 0", "stops?": "string[] <= 5" });
const Distance = type({ km: "number >= 0", stops: "number.integer" });

// arktype converts schemas to JSON Schema itself. The output schema checks the value that the tool returns.
const route = tool({
  name: "route",
  title: "Plan a route",
  description: "Measures a route",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  input: Route,
  output: Distance,
  run: ({ from, to, stops = [] }) => ({ km: 10 * Math.abs(from.length - to.length), stops: stops.length }),
});

export default createServer({ name: "validators", version: "1.0.0", handlers: [order, route] });
