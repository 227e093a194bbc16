// Writes mcp.schema.json, which editors read, from the schema that validates config files.
import { toJsonSchema } from "../../src/cli/config/schema.ts";

/** The URL of mcp.schema.json. */
export const schemaFile: URL = new URL("../../mcp.schema.json", import.meta.url);

/** The expected content of mcp.schema.json. */
export const schemaText: string = `${JSON.stringify(toJsonSchema(), null, 2)}\n`;

if (import.meta.main) await Deno.writeTextFile(schemaFile, schemaText);
