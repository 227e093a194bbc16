/**
 * Creates elicitation, sampling and roots requests to the client, and validates the client's answers.
 */
import { quote } from "../../core/protocol/errors.ts";
import { isObject } from "../../core/protocol/jsonrpc.ts";
import type { SamplingContent, SamplingMessage, SamplingRequest } from "../../core/protocol/types.ts";
import { toForm } from "../../core/schema/form.ts";
import type { Checked } from "../../core/schema/schema.ts";
import type { ElicitOptions, ElicitUrlOptions } from "./context.ts";
import { checkOptions, type KnownOptions, show, withoutNulls } from "../../core/known_options.ts";
import { FORM, type PreparedQuestion } from "./question.ts";

export const ELICIT: KnownOptions<keyof ElicitOptions> = {
  names: { message: true, schema: true, singleUse: "boolean" },
  hints: { once: "singleUse" },
};

const ELICIT_URL: KnownOptions<keyof ElicitUrlOptions> = {
  names: { message: true, url: true, singleUse: "boolean" },
  hints: { once: "singleUse" },
};

/** Creates an elicitation with a form. Throws if an option is invalid. */
export function elicitation(key: string, options: ElicitOptions): PreparedQuestion {
  checkOptions(`ask ${quote(key)}`, options, ELICIT);
  const { message, schema, singleUse = false } = options;
  checkMessage(key, message);
  return {
    key,
    requires: [FORM],
    make() {
      const form = toForm(schema, `the question ${JSON.stringify(key)}`);
      return {
        method: "elicitation/create",
        params: { message, requestedSchema: form.requestedSchema },
        isSingleUse: singleUse,
        read(given) {
          const answer = readAction(given);
          if (answer.problem !== undefined || !isObject(given) || given.action !== "accept") return answer;
          const checked = form.check(given.content ?? form.defaults);
          return checked instanceof Promise ? checked.then(toAccepted) : toAccepted(checked);
        },
      };
    },
  };
}

/** Creates an elicitation with a web page. Throws if an option is invalid. */
export function urlElicitation(key: string, options: ElicitUrlOptions): PreparedQuestion {
  checkOptions(`ask ${quote(key)}`, options, ELICIT_URL);
  const { message, url, singleUse = false } = options;
  checkMessage(key, message);
  return {
    key,
    requires: ["elicitation.url"],
    make() {
      // Require a well-formed URL. A browser repairs white space and missing slashes, and would open a different URL
      // from the URL that the user sees.
      if (!/^https?:\/\/\S+$/i.test(url) || !URL.canParse(url)) {
        throw new TypeError(`Cannot ask the user to open ${quote(url)}: it is not a well-formed http or https URL`);
      }
      const params = { mode: "url", message, url };
      return { method: "elicitation/create", params, isSingleUse: singleUse, read: readAction };
    },
  };
}

function checkMessage(key: string, message: unknown): void {
  if (typeof message === "string") return;
  throw new TypeError(`Cannot ask ${quote(key)}: message is ${show(message)}; it must be a string`);
}

/** Creates a sampling request. The request requires `sampling.tools` if it refers to tools. */
export function sampling(key: string, request: SamplingRequest): PreparedQuestion {
  const { messages, maxTokens, tools, toolChoice, includeContext } = request;
  if (!Array.isArray(messages) || !Number.isInteger(maxTokens)) {
    throw new TypeError(`Cannot sample ${quote(key)}: messages must be an array, and maxTokens an integer`);
  }
  const wrong = findUnbalanced(messages);
  return {
    key,
    requires: [tools ?? toolChoice ?? wrong ? "sampling.tools" : "sampling"],
    make({ sampling }) {
      if (wrong && wrong.at >= 0) {
        throw new TypeError(
          `Cannot sample ${
            quote(key)
          }: messages[${wrong.at}] is invalid; put tool uses only in assistant messages, and one result of each use, and nothing else, in the next user message`,
        );
      }
      const isKept = includeContext === "none" || isObject(sampling?.context);
      const params = withoutNulls({ ...request, includeContext: isKept ? includeContext : undefined });
      return { method: "sampling/createMessage", params, read: readSample };
    },
  };
}

/**
 * Returns the index of the first invalid message. A message must contain exactly the results for the tool uses in the
 * previous message. Only the assistant may use tools, and a user message with tool results may contain nothing else.
 * The index is -1 if all messages are valid. Returns `undefined` if no message refers to tools.
 */
function findUnbalanced(messages: readonly SamplingMessage[]): { readonly at: number } | undefined {
  let hasTools = false;
  let open = "[]";
  // Append an empty message, so that a tool use without a result in the last message is found.
  const at = [...messages, { role: "user", content: [] }].findIndex(({ role, content }) => {
    const blocks: readonly SamplingContent[] = [content].flat();
    const uses = blocks.flatMap((block) => block.type === "tool_use" ? block.id : []);
    const results = blocks.flatMap((block) => block.type === "tool_result" ? block.toolUseId : []);
    const asked = open;
    open = JSON.stringify(uses.sort());
    hasTools ||= uses.length + results.length > 0;
    return JSON.stringify(results.sort()) !== asked || new Set(uses).size < uses.length ||
      (results.length ? role !== "user" || results.length < blocks.length : uses.length && role === "user");
  });
  return hasTools ? { at } : undefined;
}

export const ROOTS: PreparedQuestion = {
  key: "roots",
  requires: ["roots"],
  make: () => ({ method: "roots/list", params: {}, read: readRoots }),
};

function readAction(given: unknown): Checked {
  const action = isObject(given) ? given.action : undefined;
  return action === "accept" || action === "decline" || action === "cancel"
    ? { value: { action } }
    : { problem: "action: expected accept, decline or cancel" };
}

function readSample(given: unknown): Checked {
  return isObject(given) && typeof given.role === "string" && typeof given.content === "object" && given.content
    ? { value: given }
    : { problem: "role, content: required" };
}

function readRoots(given: unknown): Checked {
  return isObject(given) && Array.isArray(given.roots)
    ? { value: given.roots }
    : { problem: "roots: expected an array" };
}

function toAccepted(checked: Checked): Checked {
  return checked.problem === undefined ? { value: { action: "accept", content: checked.value } } : checked;
}
