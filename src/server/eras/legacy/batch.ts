/**
 * Serves batches: arrays of messages, which only revision 2025-03-26 allows.
 *
 * @see specification/2025-03-26/basic
 */
import { INVALID_REQUEST, McpError, toBusy } from "../../../core/protocol/errors.ts";
import { type Batch, type Broken, type Incoming, toFailure } from "../../../core/protocol/jsonrpc.ts";
import { toMessage } from "../../../core/protocol/message_parser.ts";
import type { Core } from "../../engine/core.ts";
import type { Link, Reply } from "../../call/link.ts";
import { refuse, refuseBusy, toErrorInfo } from "./error_replies.ts";
import type { Session } from "./session_state.ts";
import { hasBatches } from "./versions.ts";

type Readable = Exclude<Incoming, Batch | Broken>;

export interface ReceivedBatch {
  readonly core: Core;
  readonly session: Session;
  readonly link: Link;
  readonly batch: Batch;
  readonly serve: (message: Readable) => Reply | Promise<Reply>;
}

/** Returns the responses as one JSON array, or an empty reply if there are no responses. */
export async function serveBatch(received: ReceivedBatch): Promise<Reply> {
  const { core, session, link, batch } = received;
  const { request } = core.limits;
  const { items } = batch;
  const problem = !hasBatches(session.client.version)
    ? "the session's revision does not allow batches; send one message at a time"
    : !items.length
    ? "the batch is empty"
    : undefined;
  const { version } = session.client;
  if (items.length > request.batchMessages) {
    const limits = "request.batchMessages";
    const state = `the batch has more than ${request.batchMessages} messages (${limits})`;
    return refuse(core, link, { version, status: 400, state, reason: "batch", limits });
  }
  if (problem) return refuse(core, link, { version, status: 400, state: problem, reason: "batch" });
  const messages = items.map((item) => toMessage(item, request));
  const conflict = findConflict(messages);
  if (conflict) return refuse(core, link, { version, status: 400, state: conflict, reason: "batch" });
  // Charge the client for the whole batch until every message has its response, because all messages stay in memory
  // until then.
  const { account } = link;
  if (!account.hold(batch.weight)) {
    const error = toBusy("run the batch: too much memory is used", "memory.bytesPerClient, memory.bytes");
    return refuseBusy(core, link, { version }, error);
  }
  try {
    const replies = await serveItems(received, messages);
    const answers = replies.flatMap(({ text }) => text ?? []);
    return answers.length ? { text: `[${answers.join(",")}]` } : {};
  } finally {
    account.free(batch.weight);
  }
}

// Yield to the event loop every `TURN_MS`. Otherwise a large batch would block other requests.
async function serveItems(
  { core, link, serve }: ReceivedBatch,
  messages: readonly Exclude<Incoming, Batch>[],
): Promise<Reply[]> {
  const { limits: { calls }, ticker: { clock } } = core;
  const replies: Promise<Reply>[] = [];
  let length = 0;
  let since = clock.now();
  // Limit the total length of the responses. Otherwise a batch could return `request.batchMessages` results of the
  // maximum size.
  const take = ({ text = "" }: Reply, message: Incoming): Reply => {
    length += text.length;
    if (length <= calls.resultBytes) return { text: text || undefined };
    const state = "Cannot send the result: the responses of the batch are too long (calls.resultBytes)";
    const id = message.kind === "request" ? message.id : null;
    return { text: text && toFailure(id, new McpError(INVALID_REQUEST, state)) };
  };
  for (const message of messages) {
    const reply = message.kind === "broken" ? refuseItem(core, link, message) : serve(message);
    replies.push(Promise.resolve(reply).then((reply) => take(reply, message)));
    if (clock.now() - since < TURN_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    since = clock.now();
  }
  return await Promise.all(replies);
}

function refuseItem(core: Core, link: Link, broken: Broken): Reply {
  core.observing?.refuse(link, { ...toErrorInfo(broken), reason: "message" });
  return { text: toFailure(broken.id ?? null, broken) };
}

function findConflict(messages: readonly Incoming[]): string | undefined {
  const requests = messages.flatMap((message) => message.kind === "request" ? message : []);
  if (requests.some(({ method }) => method === "initialize")) return "initialize cannot be part of a batch";
  const ids = new Set(requests.map(({ id }) => `${typeof id} ${id}`));
  if (ids.size < requests.length) return "two requests of the batch have the same id";
}

/** Maximum time in milliseconds for which a batch runs before it yields to the event loop. */
const TURN_MS = 20;
