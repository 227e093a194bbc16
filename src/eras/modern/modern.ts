/**
 * The modern era: every request stands for itself.
 *
 * @see specification/2026-07-28/basic/versioning
 * @module
 */
import { INTERNAL_ERROR, INVALID_REQUEST, McpError, METHOD_NOT_FOUND } from "../../protocol/errors.ts";
import {
  type Id,
  type Incoming,
  isObject,
  type Request,
  type Result,
  toFailure,
  toNotification,
  toSuccess,
} from "../../protocol/jsonrpc.ts";
import { Call, type Carrier, type Link, type Reply } from "../../core/call.ts";
import type { Core, Era, Outcome } from "../../core/core.ts";
import { BUSY } from "../../core/dispatch.ts";
import type { Method } from "../../core/handler.ts";
import { toUnknownMethod } from "../../core/registry.ts";
import { Answers } from "./answers.ts";
import { discover } from "./discover.ts";
import { META, readEnvelope, VERSION } from "./envelope.ts";
import { listener } from "./listen.ts";

/** Serves modern requests, and hands what is not modern to `other`; without another, everything is taken as modern. */
export function modernEra(core: Core, other?: Era): Era {
  const own = new Map([["server/discover", discover(core)]]);
  const listen = listener(core);
  const rounds = new WeakMap<Call, Answers>();
  const texts = new WeakMap<Result, string>();
  const head = `{"resultType":"complete","_meta":${JSON.stringify({ [META + "serverInfo"]: core.identity })}`;

  const carrier: Carrier = {
    notify: ({ link }, method, params) => link.send(toNotification(method, params)),
    ask: (call, key, question) => answersOf(call).ask(key, question),
    once: (call, key, make) => answersOf(call).once(key, make),
  };

  function accept(message: Incoming, link: Link): Reply | Promise<Reply> {
    if (other && !isModern(message, link)) return other.accept(message, link);
    if (message.kind === "request") return answer(message, link);
    if (message.kind === "broken") return { text: toFailure(message.id, message), status: 400 };
    if (message.kind === "notification") {
      const id = message.params?.requestId;
      if (message.method === "notifications/cancelled" && (typeof id === "string" || typeof id === "number")) {
        link.scope.cancel(id, message.params?.reason);
      }
      return {};
    }
    const error = new McpError(INVALID_REQUEST, `Cannot accept a ${message.kind}: send one request or notification`);
    return { text: toFailure(undefined, error), status: 400 };
  }

  function answer(message: Request, link: Link): Reply | Promise<Reply> {
    const method = own.get(message.method) ?? core.registry.find(message.method);
    try {
      const isListen = message.method === "subscriptions/listen";
      const call = new Call(carrier, link, message, readEnvelope(message, link.http, method));
      if (isListen) return listen(call);
      if (!method) throw toUnknownMethod(message.method);
      return method.asks ? answerAsking(call, method) : run(call, method);
    } catch (error) {
      return toErrorReply(message.id, error instanceof McpError ? error : core.report(error));
    }
  }

  async function run(call: Call, method: Method): Promise<Reply> {
    const outcome = await core.run(call, method);
    return outcome ? toReply(call, method, outcome) : {};
  }

  // A call that may ask comes back with answers, and goes out with questions.
  function answerAsking(call: Call, method: Method): Promise<Reply> {
    const { inputResponses, requestState } = call.params;
    return inputResponses === undefined && requestState === undefined ? ask(call, method) : resume(call, method);
  }

  async function ask(call: Call, method: Method): Promise<Reply> {
    const outcome = await core.run(call, method);
    if (!outcome) return {};
    const answers = rounds.get(call);
    if (!answers?.asks) return toReply(call, method, outcome);
    try {
      return { text: toSuccess(call.id, stamp(call, await answers.toResult())) };
    } catch (error) {
      return toErrorReply(call.id, error instanceof McpError ? error : core.report(error, call));
    }
  }

  async function resume(call: Call, method: Method): Promise<Reply> {
    try {
      await answersOf(call).restore();
    } catch (error) {
      return toErrorReply(call.id, error instanceof McpError ? error : core.report(error, call));
    }
    return await ask(call, method);
  }

  function answersOf(call: Call): Answers {
    let answers = rounds.get(call);
    if (!answers) rounds.set(call, answers = new Answers(core, call));
    return answers;
  }

  function toReply(call: Call, method: Method, { result, error }: Outcome): Reply {
    if (error) return toErrorReply(call.id, error);
    try {
      let text = method.stable ? texts.get(result) : undefined;
      if (!text) {
        text = stamp(call, result);
        if (method.stable) texts.set(result, text);
      }
      return { text: toSuccess(call.id, text) };
    } catch (error) {
      return toErrorReply(call.id, core.report(error, call));
    }
  }

  // The stamp is spliced into the text: what every result carries is written once, not copied for every call.
  function stamp(call: Call, result: Result): string {
    let text = JSON.stringify(result);
    if (text.length > core.limits.resultBytes) {
      throw new Error(`Cannot send the result: it is longer than ${core.limits.resultBytes} (resultBytes)`);
    }
    const { _meta: meta, resultType } = result;
    if (meta !== undefined || resultType !== undefined) {
      text = JSON.stringify({
        resultType: "complete",
        ...result,
        _meta: { [META + "serverInfo"]: core.identity, ...isObject(meta) ? meta : {} },
      });
      if (!call.cache) return text;
      return `${text.slice(0, -1)}${toHints(call.cache)}}`;
    }
    const stamped = call.cache ? head + toHints(call.cache) : head;
    return text === "{}" ? `${stamped}}` : `${stamped},${text.slice(1)}`;
  }

  // Modern clients have no streams of their own to open or sessions to end.
  const visit = (open: Era["attach"]): Era["attach"] =>
    open && ((link) => isModernLink(link) ? { status: 405, headers: { allow: "POST" } } : open(link));

  return { accept, attach: visit(other?.attach), detach: visit(other?.detach) };
}

function toHints({ ttlMs, scope }: NonNullable<Call["cache"]>): string {
  return `,"ttlMs":${ttlMs},"cacheScope":"${scope}"`;
}

/**
 * Whether a message is for this era: it says so itself, or its headers do, or only this era has the method.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 */
function isModern(message: Incoming, link: Link): boolean {
  if (message.kind === "request") {
    const meta = message.params?._meta;
    if (isObject(meta) && META + "protocolVersion" in meta) return true;
    if (message.method === "server/discover") return true;
  }
  return isModernLink(link);
}

function isModernLink(link: Link): boolean {
  const header = link.http?.headers.get("mcp-protocol-version");
  return typeof header === "string" && !(/^\d{4}-\d\d-\d\d$/.test(header) && header < VERSION);
}

function toErrorReply(id: Id, error: McpError): Reply {
  if (error.code === BUSY) return { text: toFailure(id, error), status: 503, headers: { "retry-after": "1" } };
  const status = error.code === METHOD_NOT_FOUND ? 404 : error.code === INTERNAL_ERROR ? 200 : 400;
  return { text: toFailure(id, error), status };
}
