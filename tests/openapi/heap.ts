// Measures the heap that GitHub's operations use, without the document.
import { createServer } from "../../mod.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import type { ReadHeap } from "../support/heap.ts";
import { findDocuments } from "./documents.ts";

/** Returns the bytes that the tools of GitHub's document use. */
export async function measure(readHeap: ReadHeap): Promise<number> {
  const found = await findDocuments();
  if ("missing" in found) throw new Error(found.missing);
  const before = await readHeap();
  const api = openapi(await found[0].read(), { baseUrl: "https://api.github.com", as: () => "tool" });
  const server = createServer({ name: "github", version: "1.0.0", handlers: [api] });
  const used = await readHeap() - before;
  await server.close();
  return used;
}
