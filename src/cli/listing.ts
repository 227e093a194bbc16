/**
 * Everything that a server lists.
 *
 * @module
 */
import type { Client } from "../client/calls.ts";
import type { RequestOptions } from "../client/rpc.ts";
import type { Finding, Listing } from "./findings.ts";

/** What is listed, and what could not be. */
export interface Listed {
  readonly listing: Listing;
  readonly failures: readonly Finding[];
}

/** Lists everything that the server says it has; what cannot be listed is told. Throws if `signal` is aborted. */
export async function listAll(client: Client, options: Pick<RequestOptions, "signal"> = {}): Promise<Listed> {
  const { capabilities } = client.server;
  const failures: Finding[] = [];
  const list = async <T>(feature: string, list: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    if (!capabilities[feature]) return [];
    try {
      return await list();
    } catch (error) {
      options.signal?.throwIfAborted();
      const state = error instanceof Error ? error.message : String(error);
      failures.push({ level: "error", place: feature, state: `they cannot be listed: ${state}` });
      return [];
    }
  };
  const listing = {
    tools: await list("tools", () => client.listTools(options)),
    resources: await list("resources", () => client.listResources(options)),
    templates: await list("resources", () => client.listResourceTemplates(options)),
    prompts: await list("prompts", () => client.listPrompts(options)),
  };
  return { listing, failures };
}

/** A number of things, for people. */
export function toCount(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
