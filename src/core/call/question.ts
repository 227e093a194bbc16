/**
 * The interface of questions to the client, and the capabilities that questions and handlers require.
 *
 * @module
 */
import { INTERNAL_ERROR, McpError, MISSING_CAPABILITY, quote } from "../../protocol/errors.ts";
import { isObject, type Params } from "../../protocol/jsonrpc.ts";
import type { ClientCapabilities } from "../../protocol/types.ts";
import type { Checked } from "../../schema/schema.ts";

/** A request to the client. */
export interface Question {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Params;
  /** Whether the server accepts each later answer in this call only once. */
  readonly isSingleUse?: boolean;
  /** Checks and converts the client's answer. */
  read(answer: unknown): Checked | Promise<Checked>;
}

// Recognized by a brand, because a handler may use its own copy of the library.
const QUESTION: unique symbol = Symbol.for("mcp.question");

/** Ends a run of a handler that asks its client. The handler runs again when the answer arrives. */
export class QuestionError extends McpError {
  /** Creates the error. No client receives it, because the server sends the questions instead. */
  constructor() {
    super(INTERNAL_ERROR, "The client is being asked; this handler runs again when it has answered");
  }

  /** @ignore */
  get [QUESTION](): true {
    return true;
  }
}

/**
 * Tests whether an error that middleware or an extension caught is a question to the client and not a failure. Rethrow
 * the error, so that the server asks the client. In sessions, handlers wait for answers, so this error does not occur.
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

/** A question that is built when the client is known to have the required capabilities. */
export interface PreparedQuestion {
  readonly key: string;
  /** Dotted names, such as `elicitation.url`, of the capabilities and modes that the client must have declared. */
  readonly requires: readonly string[];
  /** Builds the question, without fields that require other capabilities. Throws if the question is invalid. */
  make(has: ClientCapabilities): Question;
}

/**
 * A capability that a handler needs from its client.
 *
 * - `elicitation`: forms.
 * - `elicitation.url`: web pages.
 * - `sampling`: requests to a model.
 * - `sampling.tools`: requests to a model that can use tools.
 * - `sampling.context`: requests to a model with context from MCP servers.
 * - `roots`: the directories and files that the client offers.
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
    throw new TypeError(`Cannot make ${place}: it requires ${quote(need)}; use ${REQUIREMENTS.join(", ")}`);
  });
}

/** The default mode of elicitation, for clients that declare no mode. */
export const FORM = "elicitation.form";

/**
 * Checks that a client declared all required capabilities. Throws an error that lists the missing capabilities.
 * `action` completes the message "Cannot …".
 */
export function requireCapabilities(has: ClientCapabilities, needs: readonly string[], action: string): void {
  const missing: Record<string, Params> = {};
  for (const need of needs) {
    // Join the remaining parts, because the id of an extension contains dots.
    const [name, ...rest] = need.split(".");
    const mode = rest.join(".");
    const offered = has[name];
    if (isObject(offered) && (!mode || isObject(offered[mode]) || need === FORM && offered.url === undefined)) continue;
    missing[name] = { ...missing[name], ...mode && { [mode]: {} } };
  }
  if (!Object.keys(missing).length) return;
  throw new McpError(
    MISSING_CAPABILITY,
    `Cannot ${action}: the client did not declare ${JSON.stringify(missing)}`,
    { requiredCapabilities: missing },
  );
}
