// Three catalogues of tools, on which the ranking of a tool search is measured. record.ts writes them, and names their
// sources.
import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { tool } from "../../mod.ts";

/** A tool, without the parts that say nothing about its purpose. */
export interface CatalogueTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: InputSchema;
}

/** The input schema of a {@linkcode CatalogueTool}: its arguments, without what is inside of them. */
export interface InputSchema {
  readonly type: "object";
  readonly properties: Readonly<Record<string, ArgumentSchema>>;
}

/** The schema of an argument. */
export interface ArgumentSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
}

/** The number of tools of each catalogue. */
export const CATALOGUES = { github: 1223, kubernetes: 1014, published: 182 } as const;

/** The name of a catalogue. */
export type CatalogueName = keyof typeof CATALOGUES;

/** Returns the tools of a catalogue, in the order of their source. */
export async function readCatalogue(name: CatalogueName): Promise<readonly CatalogueTool[]> {
  const bytes = await readFile(toUrl(name));
  return JSON.parse(new TextDecoder().decode(gunzipSync(bytes)));
}

/** Returns the tools of a catalogue for a server. */
export function toTools(tools: readonly CatalogueTool[]) {
  return tools.map(({ name, title, description, inputSchema }) =>
    tool({ name, title, description, input: { ...inputSchema }, run: () => "called" })
  );
}

/** Returns the file of a catalogue. */
export function toUrl(name: CatalogueName): URL {
  return new URL(`./catalogues/${name}.json.gz`, import.meta.url);
}
