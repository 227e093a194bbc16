// Writes mcp.schema.json, which editors read, from the schema that config files are checked by.
import { toJsonSchema } from "../../src/cli/config/schema.ts";

/** Where the file is. */
export const schemaFile: URL = new URL("../../mcp.schema.json", import.meta.url);

/** What it should say. */
export const schemaText: string = `${JSON.stringify(toJsonSchema(), null, 2)}\n`;

if (import.meta.main) await Deno.writeTextFile(schemaFile, schemaText);
