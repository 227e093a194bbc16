/**
 * Records the resources that a handler reads with `ctx.readResource`. The caller's rights to these resources decide who
 * may use the result, the stream, the questions and the task of the call.
 *
 * @module
 */
import type { Call } from "./call.ts";
import type { Reads } from "./lives.ts";

/** Records that the handler of `call` reads a resource that not every caller may read. */
export function noteRead(call: Call, uri: string): void {
  call.reads = addRead(call.reads, uri);
  // The link of an outer call also belongs to the inner call, so only the outermost call informs its link.
  if (call.onRead) call.onRead(uri);
  else call.link.onRead?.((reads) => addRead(reads, uri));
}

/** Adds a URI. Returns `reads` itself if nothing changes. */
export function addRead(reads: Reads = [], uri: string): Reads {
  if (reads === "many" || reads.includes(uri)) return reads;
  const all = [...reads, uri];
  const characters = all.reduce((sum, { length }) => sum + length, 0);
  return all.length > MAX_READS || characters > MAX_CHARACTERS ? "many" : all;
}

/** Maximum number of resources in a list, because each check of a caller checks all of them. */
const MAX_READS = 32;
/** Maximum length of all URIs in a list, because streams and tasks keep the list. */
const MAX_CHARACTERS = 4096;
