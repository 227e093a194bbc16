// A server in the style of mcp-lite: schemas are raw JSON Schema or any Standard Schema, and handlers return full
// results and bytes.
import { z } from "zod";
import { createServer, McpError, resource, type Server, tool } from "../../../mod.ts";

const addSchema = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number", default: 10 } },
  required: ["a"],
} as const;
const add = ({ a, b }: { a: number; b: number }) => ({ content: [{ type: "text" as const, text: String(a + b) }] });

const powerSchema = z.object({
  base: z.string().regex(/^-?\d+$/).transform(BigInt),
  exponent: z.coerce.number().int().max(200),
});
const power = ({ base, exponent }: { base: bigint; exponent: number }) => ({ power: base ** BigInt(exponent) });

const average = ({ values }: { values: readonly number[] }) => {
  if (!values.length) throw new McpError(-32602, "No values");
  return { mean: values.reduce((sum, value) => sum + value, 0) / values.length, seen: new Set(values) };
};
const table = () => new Uint8Array([1, 2, 3]);

export const calculator: Server = createServer({
  name: "calculator",
  version: "1.0.0",
  handlers: [
    tool({ name: "add", input: addSchema, run: add }),
    tool({ name: "power", input: powerSchema, run: power }),
    tool({
      name: "average",
      input: { values: z.array(z.number()) },
      output: { type: "object", properties: { mean: { type: "number" }, seen: { type: "array" } }, required: ["mean"] },
      run: average,
    }),
    resource({ uri: "file:///table.bin", name: "table", mimeType: "application/x-table", read: table }),
  ],
});
