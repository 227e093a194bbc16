// A server in the style of the official SDK, version 1: inputs are plain zod 3 and zod 4 shapes, handlers return full
// results, and resources receive a URL and return `{ contents }`. Only the registration uses this library.
import { z } from "zod";
import { z as z3 } from "zod/v3";
import { createServer, prompt, resource, type Server, tool, withJsonSchema } from "../../../mod.ts";

const forecastSchema = {
  city: z.string().min(1).describe("Name of the city"),
  days: z.number().int().min(1).max(7).default(3),
  units: z.enum(["metric", "imperial"]).optional(),
};
async function forecast({ city, days, units }: { city: string; days: number; units?: "metric" | "imperial" }) {
  const degrees = units === "imperial" ? "F" : "C";
  const outlook = await Promise.resolve(Array.from({ length: days }, (_, day) => `${day + 1}: 20 °${degrees}`));
  return {
    content: [{ type: "text" as const, text: `${city}\n${outlook.join("\n")}` }],
    structuredContent: { city, days: outlook.length },
  };
}

const historySchema = z3.object({
  since: z3.coerce.date(),
  until: z3.coerce.date().optional(),
  stations: z3.array(z3.string()).transform((names) => new Set(names)).optional(),
});
const historyJson = {
  type: "object",
  properties: {
    since: { type: "string", format: "date-time" },
    until: { type: "string", format: "date-time" },
    stations: { type: "array", items: { type: "string" }, uniqueItems: true },
  },
  required: ["since"],
};
function history({ since, until, stations }: { since: Date; until?: Date; stations?: Set<string> }) {
  const end = until ?? new Date("2026-01-31T00:00:00Z");
  const days = Math.round((end.getTime() - since.getTime()) / 86_400_000);
  return { content: [{ type: "text" as const, text: `${days} days at ${stations?.size ?? 0} stations` }] };
}

function radar() {
  const bytes = new Uint8Array([137, 80, 78, 71]);
  return { content: [{ type: "image" as const, data: bytes.toBase64(), mimeType: "image/png" }] };
}

function fail() {
  return { content: [{ type: "text" as const, text: "The station is down" }], isError: true };
}

const readStation = (uri: URL) => ({
  contents: [{ uri: uri.href, mimeType: "text/plain", text: `Station ${uri.host}` }],
});

const reportSchema = { city: z.string(), tone: z.string().optional() };
const report = ({ city, tone }: { city: string; tone?: string }) => ({
  messages: [{
    role: "user" as const,
    content: { type: "text" as const, text: `Write a ${tone ?? "short"} report on ${city}.` },
  }],
});

export const weather: Server = createServer({
  name: "weather",
  version: "1.0.0",
  handlers: [
    tool({ name: "forecast", description: "Tells the weather", input: forecastSchema, run: forecast }),
    tool({ name: "history", input: withJsonSchema(historySchema, historyJson), run: history }),
    tool({ name: "radar", input: {}, run: radar }),
    tool({ name: "fail", input: {}, run: fail }),
    resource({ uri: "station://{id}", name: "station", read: ({ id }) => readStation(new URL(`station://${id}`)) }),
    prompt({ name: "report", input: reportSchema, run: report }),
  ],
});
