/**
 * Records the resources that a handler reads with `ctx.readResource`. The caller's rights to these resources decide who
 * may use the result, the stream, the questions and the task of the call.
 */
import { sha256 } from "../../core/kit/sha256.ts";
import type { Call } from "./call.ts";
import { toCallerPrint } from "./caller_print.ts";
import type { Principal } from "./context.ts";
import type { Read, Reads } from "./lives.ts";
import type { Question } from "./question.ts";

/** Records that the handler of `call` reads a resource that not every caller may read. */
export async function noteRead(call: Call, uri: string): Promise<void> {
  addTo(call, { uri, caller: await hashCaller(call.principal) });
}

/** Records a read in a call and its outer calls. */
export function addTo(call: Call, read: Read): void {
  call.reads = addRead(call.reads, read);
  // The link of an outer call also belongs to the inner call, so only the outermost call informs its link.
  if (call.onRead) call.onRead(read);
  else call.link.onRead?.((reads) => addRead(reads, read));
}

/** Records a question of a resource that the handler of `call` reads, because the result depends on the answer too. */
export function noteQuestion(call: Call, key: string, { method, params }: Question): void {
  call.askedTexts = (call.askedTexts ?? new Map()).set(key, JSON.stringify([method, params]));
}

/** Sets the resources that an earlier run of the call's handler has read. */
export function setReads(call: Call, reads: Reads): void {
  call.reads = reads;
}

/** Tests whether a value lists the resources that a handler has read. */
export function isReads(value: unknown): value is Reads {
  return typeof value === "string" || Array.isArray(value) && value.every((uri) => typeof uri === "string");
}

/** Adds all resources of `more` to `reads`. Returns `reads` itself if nothing changes. */
export function joinReads(reads: Reads | undefined, more: Reads, caller: string): Reads | undefined {
  if (typeof more === "string") return typeof reads === "string" ? reads : more;
  return more.reduce<Reads | undefined>((reads, uri) => addRead(reads, { uri, caller }), reads);
}

function addRead(reads: Reads = [], { uri, caller }: Read): Reads {
  if (typeof reads === "string" || reads.includes(uri)) return reads;
  const all = [...reads, uri];
  const characters = all.reduce((sum, { length }) => sum + length, 0);
  return all.length > MAX_READS || characters > MAX_CHARACTERS ? caller : all;
}

const hashes = new WeakMap<Principal, Promise<string>>();

/** Stands for a caller that cannot be compared with any caller, not even with itself. */
export const UNKNOWN_CALLER = "unknown";

/**
 * Returns a hash that is the same for the same caller, as {@linkcode toCallerPrint} compares callers. Returns
 * {@linkcode UNKNOWN_CALLER} if the caller cannot be compared.
 */
export function hashCaller(principal: Principal | undefined): Promise<string> {
  const print = principal && hashes.get(principal);
  if (print) return print;
  const text = toCallerPrint(principal);
  const hash = text === undefined ? Promise.resolve(UNKNOWN_CALLER) : sha256(text);
  if (principal) hashes.set(principal, hash);
  return hash;
}

/** Maximum number of resources in a list, because each check of a caller checks all of them. */
const MAX_READS = 32;
/** Maximum length of all URIs in a list, because streams and tasks keep the list. */
const MAX_CHARACTERS = 4096;
