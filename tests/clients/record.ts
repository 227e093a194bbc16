// The record of what real clients do, from which the page docs/reference/clients.md is written.
import type { Behaviours } from "./behaviours.ts";

/** What is known of a client. */
export interface ClientRecord {
  readonly kind: "agent" | "framework" | "gateway";
  readonly title: string;
  /** The npm package. */
  readonly package: string;
  readonly version: string;
  /** The day on which the behaviours were seen, such as `2026-11-27`. */
  readonly date: string;
  /** The behaviours over HTTP. */
  readonly behaviours: Behaviours;
  /** The behaviours over stdio that differ. */
  readonly stdio: Behaviours;
  /** The behaviours that differ if the server uses the official SDK. */
  readonly official: Behaviours;
  /** The behaviours that differ if `mcp gateway` is in front of the server. `undefined` if this was not tried. */
  readonly gateway?: Behaviours;
}

/** All clients, by name. */
export type Records = Readonly<Record<string, ClientRecord>>;

const file = new URL("record.json", import.meta.url);

/** Reads the record. */
export async function readRecords(): Promise<Records> {
  return JSON.parse(await Deno.readTextFile(file));
}

/** Writes the record, with the clients in alphabetical order. */
export async function writeRecords(records: Records): Promise<void> {
  const sorted = Object.fromEntries(Object.entries(records).sort(([a], [b]) => a < b ? -1 : 1));
  await Deno.writeTextFile(file, JSON.stringify(sorted, null, 2) + "\n");
}

/** Returns the members of the first behaviours that the second behaviours have with another value. */
export function toDifferences(behaviours: Behaviours, base: Behaviours): Behaviours {
  return Object.fromEntries(
    Object.entries(behaviours).filter(([name, value]) => name in base && base[name] !== value),
  );
}
