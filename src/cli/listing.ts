/**
 * Lists the tools, resources, templates and prompts of a server.
 */
import type { Client, RequestOptions } from "../client/client.ts";
import type { Finding } from "./finding.ts";
import type { Listing } from "./listing_check.ts";

/** The lists of a server, as far as they could be loaded. */
export interface ListResult {
  readonly listing: Listing;
  /** A finding for each list that could not be loaded. */
  readonly failures: readonly Finding[];
}

/** Requests the lists of all features that the server declares. Throws if `signal` aborts. */
export async function listAll(client: Client, options: Pick<RequestOptions, "signal"> = {}): Promise<ListResult> {
  const { capabilities, instructions } = client.server;
  const failures: Finding[] = [];
  const list = async <T>(feature: string, list: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    if (!capabilities[feature]) return [];
    try {
      return await list();
    } catch (error) {
      options.signal?.throwIfAborted();
      const state = error instanceof Error ? error.message : String(error);
      failures.push({ level: "error", place: feature, state: `the list request failed: ${state}` });
      return [];
    }
  };
  const listing = {
    tools: await list("tools", () => client.listTools(options)),
    resources: await list("resources", () => client.listResources(options)),
    templates: await list("resources", () => client.listResourceTemplates(options)),
    prompts: await list("prompts", () => client.listPrompts(options)),
    ...instructions === undefined ? {} : { instructions },
  };
  return { listing, failures };
}

/** Formats a number with a noun, such as `2 tools`. */
export function toCount(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/** Formats the numbers of a server's items, such as `2 tools, 1 resource, 0 templates, 0 prompts`. */
export function formatCounts({ tools, resources, templates, prompts }: Listing): string {
  const counts = { tool: tools, resource: resources, template: templates, prompt: prompts };
  return Object.entries(counts).map(([word, items]) => toCount(items.length, word)).join(", ");
}
