/**
 * Questions to the client: what each asks, what the client must have declared, and how its answer is read.
 *
 * @module
 */
import { McpError, MISSING_CAPABILITY, quote } from "../protocol/errors.ts";
import { isObject, type Params } from "../protocol/jsonrpc.ts";
import type { ClientCapabilities, SamplingContent, SamplingMessage, SamplingRequest } from "../protocol/types.ts";
import { toForm } from "../schema/form.ts";
import type { Checked } from "../schema/schema.ts";
import type { ElicitOptions, ElicitUrlOptions } from "./context.ts";

/** Something to ask the client. */
export interface Question {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Params;
  /** Reads the client's answer. */
  read(answer: unknown): Checked | Promise<Checked>;
}

/** A question that is made only once the client is known to have what it needs. */
export interface Asking {
  readonly key: string;
  readonly needs: ClientCapabilities;
  /** Throws if it cannot be asked; what a client with these capabilities does not expect is left out. */
  make(has: ClientCapabilities): Question;
}

/** Asks the user to fill in a form. */
export function elicitation(key: string, { message, schema }: ElicitOptions): Asking {
  return {
    key,
    needs: { elicitation: { form: {} } },
    make() {
      const form = toForm(schema, `the question ${JSON.stringify(key)}`);
      return {
        method: "elicitation/create",
        params: { message, requestedSchema: form.requestedSchema },
        read(given) {
          const answer = readAction(given);
          if (answer.problem !== undefined || !isObject(given) || given.action !== "accept") return answer;
          const checked = form.check(given.content);
          return checked instanceof Promise ? checked.then(toAccepted) : toAccepted(checked);
        },
      };
    },
  };
}

/** Asks the user to open a page. */
export function urlElicitation(key: string, { message, url }: ElicitUrlOptions): Asking {
  return {
    key,
    needs: { elicitation: { url: {} } },
    make() {
      // What a browser would open differently from how it is shown is refused too: white space, missing slashes.
      if (!/^https?:\/\/\S+$/i.test(url) || !URL.canParse(url)) {
        throw new TypeError(`Cannot ask for a visit to ${quote(url)}: use a whole http or https URL`);
      }
      return { method: "elicitation/create", params: { mode: "url", message, url }, read: readAction };
    },
  };
}

/** Asks the client's model. */
export function sampling(key: string, request: SamplingRequest): Asking {
  const { messages, tools, toolChoice, includeContext } = request;
  const wrong = findUnbalanced(messages);
  return {
    key,
    needs: tools ?? toolChoice ?? wrong ? { sampling: { tools: {} } } : { sampling: {} },
    make({ sampling }) {
      if (wrong && wrong.at >= 0) {
        throw new TypeError(
          `Cannot sample ${
            quote(key)
          }: messages[${wrong.at}] must hold one result of each tool used before, and no more`,
        );
      }
      const isKept = includeContext === "none" || isObject(sampling?.context);
      const params = { ...request, includeContext: isKept ? includeContext : undefined };
      return { method: "sampling/createMessage", params, read: readSample };
    },
  };
}

/**
 * The place of the first message that does not answer the tool uses of the message before it, or that uses tools out of
 * turn; -1 if there is none. Returns `undefined` if no message is about tools.
 */
function findUnbalanced(messages: readonly SamplingMessage[]): { readonly at: number } | undefined {
  let hasTools = false;
  let open = "[]";
  // Behind the last message nothing may be left to answer.
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

/** Asks for the client's roots. */
export const ROOTS: Asking = {
  key: "roots",
  needs: { roots: {} },
  make: () => ({ method: "roots/list", params: {}, read: readRoots }),
};

/**
 * What a handler needs of its client: `elicitation` (forms), `elicitation.url` (pages), `sampling` (a model),
 * `sampling.tools` (a model that uses tools), `sampling.context` (a model that is shown what servers offer), `roots`.
 */
export type Need = "elicitation" | "elicitation.url" | "sampling" | "sampling.tools" | "sampling.context" | "roots";

const NEEDS: readonly Need[] = [
  "elicitation",
  "elicitation.url",
  "sampling",
  "sampling.tools",
  "sampling.context",
  "roots",
];

/** Needs as capabilities. Throws if one of them is not known; `place` is the handler they belong to. */
export function toCapabilities(needs: readonly Need[] | undefined, place: string): ClientCapabilities | undefined {
  if (!needs?.length) return;
  const wanted: Record<string, Record<string, Params>> = {};
  for (const need of needs) {
    if (!NEEDS.includes(need)) {
      throw new TypeError(`Cannot make ${place}: it needs ${quote(need)}; use ${NEEDS.join(", ")}`);
    }
    const [name, mode = name === "elicitation" ? "form" : undefined] = need.split(".");
    const modes = wanted[name] ??= {};
    if (mode) modes[mode] = {};
  }
  return wanted;
}

/**
 * Checks that a client declared all that is needed. An elicitation capability without a mode means forms. Throws an
 * error that lists what is missing; `action` is what cannot be done without it.
 */
export function requireCapabilities(has: ClientCapabilities, needs: ClientCapabilities, action: string): void {
  const missing: Record<string, Params> = {};
  for (const [name, wanted] of Object.entries(needs)) {
    const offered = has[name];
    const modes = Object.entries(Object(wanted)).filter(([mode]) =>
      !isObject(offered) ||
      !isObject(offered[mode]) && (name !== "elicitation" || mode !== "form" || offered.url !== undefined)
    );
    if (modes.length || !isObject(offered)) missing[name] = Object.fromEntries(modes);
  }
  if (!Object.keys(missing).length) return;
  throw new McpError(
    MISSING_CAPABILITY,
    `Cannot ${action}: the client did not declare ${JSON.stringify(missing)}`,
    { requiredCapabilities: missing },
  );
}

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
