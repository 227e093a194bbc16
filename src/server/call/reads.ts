/**
 * Records the handlers that a handler calls for its caller, such as the resources that it reads with
 * `ctx.readResource`. The caller's rights to these handlers decide who may use the result, the stream, the questions and
 * the task of the call. Also records for which caller the output guards have run, because only this caller may use what
 * they have left.
 */
import { sha256 } from "../../core/kit/sha256.ts";
import type { Request } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "./call.ts";
import { toCallerPrint } from "./caller_print.ts";
import type { Principal } from "./context.ts";
import type { HandlerCall, Read, Reads } from "./handler_call.ts";

/** Records that the handler of `call` calls a handler that not every caller may call. */
export async function noteRead(call: Call, { method, params = {} }: HandlerCall): Promise<void> {
  const uri = method === READ ? String(params.uri) : HANDLER + JSON.stringify([method, params]);
  addTo(call, { uri, caller: await hashCaller(call.principal) });
}

/** Records that what the handler of `call` gets is only for its caller, such as a list of what this caller may call. */
export async function noteCaller(call: Call): Promise<void> {
  const caller = await hashCaller(call.principal);
  addTo(call, { uri: CALLER + caller, caller });
}

/**
 * Records what the handler of an earlier call has called, because `call` returns the result of the earlier call. Throws
 * the error for the client if the caller lacks the rights to it.
 */
export async function repeatReads(call: Call, reads: Reads): Promise<void> {
  await call.host.callInner(call, { name: "repeatReads", given: [reads] });
  if (typeof reads === "string") return await noteCaller(call);
  const caller = await hashCaller(call.principal);
  for (const uri of reads) addTo(call, { uri, caller });
}

/**
 * Records that the output of `call` passes output guards, whose result may depend on the caller. The values inside the
 * handler have not passed these guards, so the record only limits who gets what the call sends.
 */
export async function noteGuards(call: Call): Promise<void> {
  // Hash the caller only if something outlives the response, because a request has its own principal.
  if (!call.onRead && !call.link.onRead) return;
  const caller = await hashCaller(call.principal);
  const read = { uri: CALLER + caller, caller, isOutput: true };
  call.guarded = read;
  spread(call, read);
}

/** Records a read in a call and its outer calls. */
export function addTo(call: Call, read: Read): void {
  if (read.isOutput) call.guarded = read;
  else call.reads = addRead(call.reads, read);
  spread(call, read);
}

function spread(call: Call, read: Read): void {
  // The link of an outer call also belongs to the inner call, so only the outermost call informs its link.
  if (call.onRead) call.onRead(read);
  else call.link.onRead?.((reads) => addRead(reads, read));
}

/** Records a question, or a value of `ctx.once`, of an inner call, because the result of `call` depends on it too. */
export function noteQuestion(call: Call, key: string, { method, params }: Pick<Request, "method" | "params">): void {
  call.askedTexts = (call.askedTexts ?? new Map()).set(key, JSON.stringify([method, params]));
}

/** Returns what decides who may use the output of a call: the resources that its handler has read, and its caller. */
export function toReads({ reads, guarded }: Call): Reads {
  return guarded ? addRead(reads, guarded) : reads ?? [];
}

/** Returns the handler that an entry of a list names, if the entry names no caller. */
export function readHandler(entry: string): HandlerCall {
  if (!entry.startsWith(HANDLER)) return { method: READ, params: { uri: entry } };
  const [method, params] = JSON.parse(entry.slice(HANDLER.length));
  return { method, params };
}

/** Returns the hash of the caller that an entry of a list names, or `undefined` if the entry names a handler. */
export function readCaller(entry: string): string | undefined {
  return entry.startsWith(CALLER) ? entry.slice(CALLER.length) : undefined;
}

/** Tests whether no other caller can ever use what depends on `reads`, because its caller cannot be compared. */
export function isForNobody(reads: Reads): boolean {
  return typeof reads === "string" ? reads === UNKNOWN_CALLER : reads.includes(CALLER + UNKNOWN_CALLER);
}

export function setReads(call: Call, reads: Reads): void {
  call.reads = reads;
}

export function isReads(value: unknown): value is Reads {
  return typeof value === "string" || Array.isArray(value) && value.every((uri) => typeof uri === "string");
}

/** Returns `reads` itself if nothing changes. */
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

const hashes = new WeakMap<object, Promise<string>>();
/** The key of callers without a principal. */
const ANONYMOUS = {};

/** Stands for a caller that cannot be compared with any caller, not even with itself. */
export const UNKNOWN_CALLER = "unknown";

/**
 * Returns a hash that is the same for the same caller, as {@linkcode toCallerPrint} compares callers. Returns
 * {@linkcode UNKNOWN_CALLER} if the caller cannot be compared.
 */
export function hashCaller(principal: Principal | undefined): Promise<string> {
  const known = hashes.get(principal ?? ANONYMOUS);
  if (known) return known;
  const text = toCallerPrint(principal);
  const hash = text === undefined ? Promise.resolve(UNKNOWN_CALLER) : sha256(text);
  hashes.set(principal ?? ANONYMOUS, hash);
  return hash;
}

const READ = "resources/read";
/** Begins an entry with the method and the parameters of a handler, in place of a URI. No URI begins with this character. */
const HANDLER = "+";
/** Begins an entry with the hash of a caller, in place of a URI. No URI begins with this character. */
const CALLER = "=";
/** Maximum number of resources in a list, because each check of a caller checks all of them. */
const MAX_READS = 32;
/** Maximum length of all URIs in a list, because streams and tasks keep the list. */
const MAX_CHARACTERS = 4096;
