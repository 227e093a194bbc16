// Schemas and names of the tools. All measured servers use these tools, so that all servers do the same work.
import { z } from "zod";

/** The input schema of `add`. */
export const pair = z.object({ a: z.number(), b: z.number() });
/** The output schema of `add`. */
export const sum = z.object({ sum: z.number() });
/** The input schema of a tool without parameters, for libraries that require a schema. */
export const nothing = z.object({});
/** The number of progress notifications that `count` sends. */
export const STEPS = 10;

/** The input schema of each of the 100 tools in the long list. */
export const query = z.object({
  text: z.string().describe("What to look for"),
  limit: z.number().int().describe("How many results at most"),
  offset: z.number().int().optional().describe("How many results to pass over"),
  order: z.enum(["newest", "oldest", "best"]).describe("Which results come first"),
  exact: z.boolean().optional().describe("Whether only whole words count"),
  tags: z.array(z.string()).optional().describe("Tags that a result must have"),
});

/** Names of the 100 tools in the long list. */
export const names: readonly string[] = Array.from({ length: 100 }, (_, i) => `search_${100 + i}`);

/** Returns the description of a tool in the long list. */
export function toDescription(name: string): string {
  return `Searches the archive ${name} and gives the results that fit best`;
}
