/**
 * Everything that a server lists.
 *
 * @module
 */
import type { Client } from "../client/calls.ts";
import type { Finding, Listing } from "./findings.ts";

/** Lists everything that the server says it has; what cannot be listed is told. */
export async function listAll(client: Client): Promise<{ listing: Listing; failures: readonly Finding[] }> {
  const { capabilities } = client.server;
  const failures: Finding[] = [];
  const list = async <T>(feature: string, list: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    if (!capabilities[feature]) return [];
    try {
      return await list();
    } catch (error) {
      const state = error instanceof Error ? error.message : String(error);
      failures.push({ level: "error", place: feature, state: `they cannot be listed: ${state}` });
      return [];
    }
  };
  const listing = {
    tools: await list("tools", () => client.listTools()),
    resources: await list("resources", () => client.listResources()),
    templates: await list("resources", () => client.listTemplates()),
    prompts: await list("prompts", () => client.listPrompts()),
  };
  return { listing, failures };
}

/** A number of things, for people. */
export function toCount(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
