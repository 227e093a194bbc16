/**
 * The modern era: every request stands for itself.
 *
 * @see specification/2026-07-28/basic/versioning
 * @module
 */
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  isMcpError,
  McpError,
  METHOD_NOT_FOUND,
  quote,
  UNSUPPORTED_VERSION,
} from "../../protocol/errors.ts";
import {
  type Id,
  type Incoming,
  isObject,
  type Request as Message,
  type Result,
  toFailure,
  toNotification,
  toSuccess,
} from "../../protocol/jsonrpc.ts";
import { type Implementation, LOG_LEVELS } from "../../protocol/types.ts";
import { Call, type Carrier, isProgressToken, LATER, type Link, type Reply } from "../../core/call.ts";
import type { ClientFacts } from "../../core/context.ts";
import type { Core, Era, Outcome } from "../../core/core.ts";
import { BUSY } from "../../core/scheduler.ts";
import type { Method, Runner } from "../../core/feature.ts";
import { toUnknownMethod } from "../../core/registry.ts";
import { Answers } from "./input_requests.ts";
import { discover } from "./discover.ts";
import { listener } from "./listen.ts";
import { checkMirrored, isMirrored, PLAIN, toMismatch } from "./request_headers.ts";
import { META_CAPABILITIES, META_CLIENT, META_LEVEL, META_SERVER, META_VERSION, VERSION } from "./meta_keys.ts";

/** Serves modern requests, and hands what is not modern to `other`; without another, everything is taken as modern. */
export function modernEra(core: Core, other?: Era): Era {
  const own = new Map([["server/discover", discover(core)]]);
  const listen = listener(core);
  const rounds = new WeakMap<Call, Answers>();
  const texts = new WeakMap<Result, string>();
  const head = `{"resultType":"complete","_meta":${JSON.stringify({ [META_SERVER]: core.identity })}`;

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
      link.scope.note(message);
      return {};
    }
    const error = new McpError(INVALID_REQUEST, `Cannot accept a ${message.kind}: send one request or notification`);
    return { text: toFailure(undefined, error), status: 400 };
  }

  // What is wrong with a request is said before anything runs, so that it can still be said with its own status.
  function answer(message: Message, link: Link): Reply | Promise<Reply> {
    try {
      const reply = serve(message, link);
      return reply instanceof Promise ? reply.catch((error) => toFailed(message, error)) : reply;
    } catch (error) {
      return toFailed(message, error);
    }
  }

  function toFailed(message: Message, error: unknown): Reply {
    return toErrorReply(message.id, isMcpError(error) ? error : core.report(error, message));
  }

  function serve(message: Message, link: Link): Reply | Promise<Reply> {
    const method = own.get(message.method) ?? core.registry.methods.get(message.method);
    const call = new Call(carrier, link, message, readEnvelope(message, link, method));
    if (message.method === "subscriptions/listen") return listen(call);
    if (!method) throw toUnknownMethod(message.method);
    const runner = method.find(call);
    return runner instanceof Promise ? prepareLater(call, method, runner) : prepare(call, method, runner);
  }

  async function prepareLater(call: Call, method: Method, finding: Promise<Runner>): Promise<Reply> {
    // No stream yet: it has status 200 for good, and what is refused here has 400.
    call.link.quick = true;
    const runner = await finding;
    call.link.quick = false;
    return await prepare(call, method, runner);
  }

  function prepare(call: Call, method: Method, runner: Runner): Reply | Promise<Reply> {
    const { link, params } = call;
    if (runner.headers && link.headers) checkMirrored(runner.headers, link.headers, params.arguments);
    if (!method.asks || params.requestState === undefined && params.inputResponses === undefined) {
      return run(call, method, runner);
    }
    // As above: a state that is refused has 400.
    link.quick = true;
    return answersOf(call).restore().then(() => {
      link.quick = false;
      return run(call, method, runner);
    });
  }

  function run(call: Call, method: Method, runner: Runner): Reply | Promise<Reply> {
    const outcome = core.run(call, runner);
    return outcome instanceof Promise
      ? outcome.then((outcome) => toReply(call, method, outcome))
      : toReply(call, method, outcome);
  }

  function answersOf(call: Call): Answers {
    let answers = rounds.get(call);
    if (!answers) rounds.set(call, answers = new Answers(core, call));
    return answers;
  }

  // An open question comes before whatever the handler made of not having its answer.
  function toReply(call: Call, method: Method, outcome: Outcome | undefined): Reply | Promise<Reply> {
    if (!outcome) return {};
    const answers = method.asks ? rounds.get(call) : undefined;
    if (answers?.asks) return answers.toResult().then((result) => ({ text: toSuccess(call.id, stamp(call, result)) }));
    const { result, error } = outcome;
    if (error) throw error;
    let text = method.stable ? texts.get(result) : undefined;
    if (!text) {
      text = stamp(call, result);
      if (method.stable) texts.set(result, text);
    }
    return { text: toSuccess(call.id, text) };
  }

  // The stamp is spliced into the text: what every result carries is written once, not copied for every call.
  function stamp({ cache, params }: Call, result: Result): string {
    let text = JSON.stringify(result);
    if (text.length > core.limits.resultBytes) {
      throw new Error(`Cannot send the result: it is longer than ${core.limits.resultBytes} (resultBytes)`);
    }
    let hints = "";
    if (cache) {
      // What depends on answers must not be kept: they are no part of the request that a cache compares.
      const isKept = params.requestState === undefined && params.inputResponses === undefined;
      hints = `,"ttlMs":${isKept ? cache.ttlMs : 0},"cacheScope":"${isKept ? cache.scope : "private"}"`;
    }
    const { _meta: meta, resultType } = result;
    if (meta === undefined && resultType === undefined) {
      return text === "{}" ? `${head}${hints}}` : `${head}${hints},${text.slice(1)}`;
    }
    const dressed = { resultType: "complete", ...result, _meta: { [META_SERVER]: core.identity, ...meta ?? {} } };
    text = JSON.stringify(dressed);
    return `${text.slice(0, -1)}${resultType === undefined ? hints : ""}}`;
  }

  // Modern clients have no streams of their own to open and no sessions to end.
  const visit = (open: Era["attach"]): Era["attach"] =>
    open && ((link) => isModernLink(link) ? { status: 405, headers: { allow: "POST" } } : open(link));

  return { accept, attach: visit(other?.attach), detach: visit(other?.detach) };
}

/**
 * Whether a message is for this era: it says so itself, or its headers do, or only this era has the method.
 *
 * @see specification/2026-07-28/basic/versioning (Backward Compatibility)
 */
function isModern(message: Incoming, link: Link): boolean {
  if (message.kind === "request") {
    const meta = message.params?._meta;
    if (typeof meta === "object" && meta !== null && META_VERSION in meta) return true;
    if (message.method === "server/discover") return true;
  }
  return isModernLink(link);
}

function isModernLink({ version }: Link): boolean {
  return typeof version === "string" && !(/^\d{4}-\d\d-\d\d$/.test(version) && version < VERSION);
}

/**
 * Reads what a request says of itself, in the order of the specification: first the body's `_meta`, then the headers
 * that must repeat it.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Server Validation)
 */
function readEnvelope(message: Message, link: Link, method: Method | undefined): ClientFacts {
  const { params = {} } = message;
  const { _meta: meta = {} } = params;
  if (!isObject(meta)) throw invalid("params._meta is not an object");
  const { [META_VERSION]: version, [META_CAPABILITIES]: capabilities, [META_LEVEL]: level, progressToken } = meta;
  if (typeof version !== "string") {
    throw invalid(`params._meta["${META_VERSION}"] is missing; this server speaks ${VERSION}`);
  }
  const { headers } = link;
  if (headers && link.version !== version) throw toMismatch("MCP-Protocol-Version", link.version, version);
  if (version !== VERSION) {
    throw new McpError(
      UNSUPPORTED_VERSION,
      `Cannot serve the request: protocol version ${quote(version)} is not supported`,
      { supported: [VERSION], requested: version.slice(0, 200) },
    );
  }
  // Capabilities are open: each is looked at when it is needed.
  if (!isObject(capabilities)) {
    throw invalid(`params._meta["${META_CAPABILITIES}"] is not an object`);
  }
  const info = meta[META_CLIENT];
  if (info !== undefined && !isImplementation(info)) {
    throw invalid(`params._meta["${META_CLIENT}"] has no name and version`);
  }
  const logLevel = level === undefined ? undefined : LOG_LEVELS.find((each) => each === level);
  if (level !== logLevel) throw invalid(`params._meta["${META_LEVEL}"] is not a log level`);
  if (progressToken !== undefined && !isProgressToken(progressToken)) {
    throw invalid("params._meta.progressToken is not a string or integer");
  }
  if (headers) {
    const named = headers.get("mcp-method");
    if (named !== message.method) throw toMismatch("Mcp-Method", named, message.method);
    const subject = method?.subject && params[method.subject];
    if (typeof subject === "string") {
      const name = headers.get("mcp-name");
      if ((name !== subject || !PLAIN.test(name)) && !isMirrored(name, subject)) {
        throw toMismatch("Mcp-Name", name, subject);
      }
    }
  }
  return { version, info, capabilities, logLevel };
}

function isImplementation(value: unknown): value is Implementation {
  return isObject(value) && typeof value.name === "string" && typeof value.version === "string";
}

function invalid(state: string): McpError {
  return new McpError(INVALID_PARAMS, `Cannot serve the request: ${state}`);
}

function toErrorReply(id: Id, error: McpError): Reply {
  const text = toFailure(id, error);
  if (error.code === BUSY) return { text, status: 503, headers: LATER };
  return { text, status: error.code === METHOD_NOT_FOUND ? 404 : error.code === INTERNAL_ERROR ? 200 : 400 };
}
