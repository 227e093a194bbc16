/**
 * The interface of questions, which are requests to the client, and the client capabilities that questions and handlers
 * require.
 */
import { INTERNAL_ERROR, McpError, MISSING_CAPABILITY, quote } from "../../core/protocol/errors.ts";
import { isObject, type Params } from "../../core/protocol/jsonrpc.ts";
import type { ClientCapabilities } from "../../core/protocol/types.ts";
import type { Checked } from "../../core/schema/schema.ts";

/** An elicitation, sampling or roots request to the client. */
export interface Question {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Params;
  /** Whether the server accepts the answer only once. */
  readonly isSingleUse?: boolean;
  /**
   * The key under which the client gets the question, unless another question of the call has it. Defaults to the key
   * under which the server keeps the answer.
   */
  readonly name?: string;
  /** Aborts when nobody waits for the answer any longer. Has an effect only in a session. */
  readonly signal?: AbortSignal;
  /** Validates and converts the client's answer. */
  read(answer: unknown): Checked | Promise<Checked>;
}

// `isQuestion` tests for this property instead of the class, because a handler may use another copy of the library.
const QUESTION: unique symbol = Symbol.for("mcp.question");

/**
 * Thrown to end the run of a handler that has asked the client a question. The handler runs again when the answer
 * arrives.
 */
export class QuestionError extends McpError {
  /** The client does not receive the message, because the server sends the questions instead. */
  constructor() {
    super(INTERNAL_ERROR, "Cannot continue the handler: the client must answer a question first");
  }

  /** @ignore */
  get [QUESTION](): true {
    return true;
  }
}

/**
 * Tests whether an error that middleware or an extension caught is a question to the client and not a failure. Rethrow
 * such an error, so that the server asks the client. In a session, the handler waits for the answer, so no such error
 * is thrown.
 *
 * ```ts
 * import { isQuestion, type Middleware } from "@x/mcp";
 *
 * const count: Middleware = async (call, next) => {
 *   try {
 *     return await next();
 *   } catch (error) {
 *     if (!isQuestion(error)) console.error(call.method, "failed");
 *     throw error;
 *   }
 * };
 * ```
 */
export function isQuestion(error: unknown): boolean {
  return Object(error)[QUESTION] === true;
}

/** A question that is built only after the client's capabilities were checked. */
export interface PreparedQuestion {
  readonly key: string;
  /** Dotted names, such as `elicitation.url`, of the capabilities and modes that the client must have declared. */
  readonly requires: readonly string[];
  /** Builds the question, without fields that require other capabilities. Throws if the question is invalid. */
  make(has: ClientCapabilities): Question;
}

/**
 * A client capability that a handler requires.
 *
 * - `elicitation`: elicitation with forms.
 * - `elicitation.url`: elicitation with web pages.
 * - `sampling`: requests to a model.
 * - `sampling.tools`: requests to a model that can use tools.
 * - `sampling.context`: requests to a model with context from MCP servers.
 * - `roots`: the directories and files that the client makes available.
 */
export type Requirement =
  | "elicitation"
  | "elicitation.url"
  | "sampling"
  | "sampling.tools"
  | "sampling.context"
  | "roots";

const REQUIREMENTS: readonly Requirement[] = [
  "elicitation",
  "elicitation.url",
  "sampling",
  "sampling.tools",
  "sampling.context",
  "roots",
];

/** Converts requirements to dotted names of capabilities and modes. Throws if a requirement is unknown. */
export function readRequirements(
  requires: readonly Requirement[] | undefined,
  place: string,
): readonly string[] | undefined {
  return requires?.map((need) => {
    if (REQUIREMENTS.includes(need)) return need === "elicitation" ? FORM : need;
    throw new TypeError(
      `Cannot make ${place}: ${quote(need)} in requires is not a known capability; use ${REQUIREMENTS.join(", ")}`,
    );
  });
}

/** The default mode of elicitation. A client that declares no mode supports this mode. */
export const FORM = "elicitation.form";

/** Key under which capabilities store the reason why the server ignores the capability to answer questions. */
export const WITHHELD: unique symbol = Symbol();

/** `reason` completes the error message "Cannot …: ". */
export function withholdQuestions(capabilities: ClientCapabilities, reason: string): ClientCapabilities {
  const { elicitation, sampling, roots, ...others } = capabilities;
  return { ...others, ...elicitation || sampling || roots ? { [WITHHELD]: reason } : {} };
}

/**
 * Throws an error that lists the missing capabilities if the client did not declare all required capabilities. `action`
 * completes the error message "Cannot …".
 */
export function requireCapabilities(
  has: ClientCapabilities & { readonly [WITHHELD]?: string },
  needs: readonly string[],
  action: string,
): void {
  const missing: Record<string, Params> = {};
  for (const need of needs) {
    // Join the remaining parts, because an extension's id contains dots.
    const [name, ...rest] = need.split(".");
    const mode = rest.join(".");
    const offered = has[name];
    if (isObject(offered) && (!mode || isObject(offered[mode]) || need === FORM && offered.url === undefined)) continue;
    missing[name] = { ...missing[name], ...mode && { [mode]: {} } };
  }
  if (!Object.keys(missing).length) return;
  throw new McpError(
    MISSING_CAPABILITY,
    `Cannot ${action}: ${has[WITHHELD] ?? `the client did not declare ${JSON.stringify(missing)}`}`,
    { requiredCapabilities: missing },
  );
}
