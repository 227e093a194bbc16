/**
 * Passes a handler's questions to the client through the output guards.
 */
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import { INVALID_PARAMS, McpError } from "../../core/protocol/errors.ts";
import type { Call } from "../call/call.ts";
import type { Question } from "../call/question.ts";
import type { SentGuard } from "../call/sent_guard.ts";

/** Maximum number of questions per call that wait for the guards. Further questions fail. */
const MAX_WAITING = 256;

export interface GuardedQuestions extends Pick<SentGuard, "ask"> {
  /**
   * Resolves when the guards have processed all questions, so that questions that are asked together are sent together.
   *
   * @throws the error of a guard that refused a question, even if the handler has caught this error.
   */
  untilChecked(): Promise<void>;
}

/** Passes questions of the handler, its services, its middleware, and a server to which it forwards its request. */
export function guardQuestions(call: Call, pass: (params: unknown) => Promise<unknown>): GuardedQuestions {
  const waiting = new Set<Promise<unknown>>();
  let refused: readonly [error: unknown] | undefined;
  const check = async (question: Question): Promise<Question> => {
    if (waiting.size >= MAX_WAITING) {
      throw new TypeError(
        `Cannot ask the client: ${MAX_WAITING} questions wait for the output guards; await some of the answers before you ask more`,
      );
    }
    const left = await pass(JSON.parse(JSON.stringify(question.params)));
    if (call.ended) throw call.reason ?? new McpError(INVALID_PARAMS, "Cannot ask the client: the call has ended");
    return { ...question, params: readParams(left, question) };
  };
  return {
    async ask(question, ask) {
      // A request for roots contains no text.
      if (question.method === "roots/list") return await ask(question);
      const checked = check(question);
      const asked = checked.then((question) => [ask(question)]);
      // Return an array, because `untilChecked` must not wait for the answer.
      const done = asked.catch((error) => void (refused ??= [error])).finally(() => waiting.delete(done));
      waiting.add(done);
      const [answer] = await asked;
      return await answer;
    },
    async untilChecked() {
      while (waiting.size) await Promise.all(waiting);
      if (refused) throw refused[0];
    },
  };
}

/** The members without which a question is not valid. */
const REQUIRED: readonly string[] = ["message", "mode", "url", "requestedSchema", "messages", "maxTokens"];

/** @throws {TypeError} if `left` is not the params of the same kind of question. */
function readParams(left: unknown, { params }: Question): Params {
  const refuse = (state: string) =>
    new TypeError(
      `Cannot ask the client: an output guard ${state}; return the params of the question, or nothing to keep them`,
    );
  if (!isObject(left)) throw refuse("replaced the params of a question with another kind of value");
  const read: Params = JSON.parse(JSON.stringify(left));
  // Only the members that the handler has set were compared with the client's capabilities.
  const added = Object.keys(read).find((name) => params[name] === undefined);
  if (added !== undefined) throw refuse(`added ${JSON.stringify(added)} to a question`);
  const wrong = REQUIRED.find((name) => toKind(read[name]) !== toKind(params[name]));
  if (wrong !== undefined) throw refuse(`removed ${wrong} of a question, or changed its type`);
  const { mode, url } = read;
  if (mode !== params.mode) throw refuse("changed the mode of a question");
  // A browser repairs white space and missing slashes, and would open a different URL from the URL that the user sees.
  if (url !== undefined && !(/^https?:\/\/\S+$/i.test(String(url)) && URL.canParse(String(url)))) {
    throw refuse("returned a URL that is not a well-formed http or https URL");
  }
  return read;
}

function toKind(value: unknown): string {
  return Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
}
