/**
 * Requests to the client: elicitation, sampling and roots, with the capabilities they need and the checks of their
 * answers.
 *
 * @module
 */
import { isObject, type Params } from "../protocol/jsonrpc.ts";
import type { ClientCapabilities, SamplingRequest } from "../protocol/types.ts";
import { toForm } from "../schema/form.ts";
import type { Checked } from "../schema/schema.ts";
import type { ElicitOptions, ElicitUrlOptions } from "./context.ts";

/** A request to the client. */
export interface Question {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params: Params;
  /** Checks the client's answer. */
  read(answer: unknown): Checked | Promise<Checked>;
}

/** A request that is built once the client is known to have the capabilities it needs. */
export interface Asking {
  readonly key: string;
  readonly needs: ClientCapabilities;
  make(): Question;
}

/** Creates an elicitation with a form. */
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

/** Creates an elicitation with a web page. */
export function urlElicitation(key: string, { message, url }: ElicitUrlOptions): Asking {
  return {
    key,
    needs: { elicitation: { url: {} } },
    make: () => ({ method: "elicitation/create", params: { mode: "url", message, url }, read: readAction }),
  };
}

/** Creates a sampling request. */
export function sampling(key: string, request: SamplingRequest): Asking {
  return {
    key,
    needs: request.tools || request.toolChoice ? { sampling: { tools: {} } } : { sampling: {} },
    make: () => ({ method: "sampling/createMessage", params: { ...request }, read: readSample }),
  };
}

/** Requests the client's roots. */
export const ROOTS: Asking = {
  key: "roots",
  needs: { roots: {} },
  make: () => ({ method: "roots/list", params: {}, read: readRoots }),
};

/** Tests whether a client declared the needed capabilities. An elicitation capability without a mode means forms. */
export function hasCapabilities(has: ClientCapabilities, needs: ClientCapabilities): boolean {
  return Object.entries(needs).every(([name, wanted]) => {
    const offered = has[name];
    if (!isObject(offered)) return false;
    const modes = Object.keys(isObject(wanted) ? wanted : {});
    return modes.every((mode) =>
      isObject(offered[mode]) || (name === "elicitation" && mode === "form" && offered.url === undefined)
    );
  });
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
