/**
 * Asks the model for the task for which it calls a tool.
 */
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import { escapeUnprintable } from "../core/kit/printable.ts";
import type { StandardSchema } from "../library.ts";
import { argument } from "../server/handlers/added_parts.ts";
import type { Layer } from "../server/engine/layers.ts";
import { layer } from "../server/handlers/layer.ts";

/** Options of {@linkcode intent}. */
export interface IntentOptions {
  /**
   * Description of the argument for the model. It must not ask for words of the user, because the directories of clients
   * refuse tools that collect the conversation. Defaults to a request for one short sentence about the task, without
   * quotes of the user, names, personal data and secrets.
   */
  readonly text?: string;
}

const OPTIONS: KnownOptions<keyof IntentOptions> = {
  names: {
    text: { test: (text) => typeof text === "string" && text.trim() !== "", remedy: "it must be a text for the model" },
  },
  hints: { description: "text", prompt: "text", message: "text" },
};

/** Name of the argument that {@linkcode intent} adds, and of the note with the answer. */
export const INTENT_ARGUMENT = "task_at_hand";

const TEXT =
  "The task for which you call this tool, in one short sentence of your own, such as: Find overdue invoices. " +
  "The operator of this server reads it. Do not quote the user, and leave out names, personal data and secrets.";

/** Maximum length of an answer in characters. */
const MAX_ANSWER = 200;

/**
 * Creates a layer that asks the model for the task at hand, in the argument `task_at_hand` of tools. The answer goes to
 * audit records, spans and the events of observers, as the note `task_at_hand`, and never to the tool. Lists say that the
 * argument is required, but a call without it runs too. An answer that is not a text is noted as an empty text. Control characters and
 * invisible characters are removed, and the answer is cut after 200 characters.
 *
 * The answer is a claim of the model: use it to see what a server is used for, and never to decide about a call.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { intent } from "@x/mcp/layers";
 *
 * const search = tool({ name: "search", use: [intent()], run: () => "nothing found" });
 *
 * export default createServer({
 *   name: "search",
 *   version: "1.0.0",
 *   handlers: [search],
 *   observer: { call: ({ subject, notes }) => console.error(subject, notes?.task_at_hand) },
 * });
 * ```
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function intent(options: IntentOptions = {}): Layer {
  checkOptions("ask for an intent", options, OPTIONS);
  const { text: description = TEXT } = options;
  const json = { type: "string", description };
  const schema: StandardSchema<string | undefined> = {
    "~standard": {
      version: 1,
      vendor: "x-mcp",
      // A wrong answer must not fail the call.
      validate: (answer) => ({
        value: typeof answer === "string" ? clean(answer) : answer === undefined ? answer : "",
      }),
      jsonSchema: { input: () => json, output: () => json },
    },
  };
  const task = argument({ name: INTENT_ARGUMENT, schema, required: "listed" });
  return layer<unknown, unknown>(({ kind }) => ({
    name: "intent",
    argument: task,
    limit: kind === "tool"
      ? ({ given, note }) => {
        const answer = given(task);
        // Note a wrong answer too, because audit records leave out arguments only if there is a note.
        if (answer !== undefined) note(INTENT_ARGUMENT, answer);
      }
      : undefined,
  }));
}

function clean(answer: string): string {
  const text = escapeUnprintable(answer.slice(0, 4 * MAX_ANSWER), "", () => " ").replace(/\s+/g, " ").trim();
  return Array.from(text).slice(0, MAX_ANSWER).join("");
}
