/**
 * Asks the user for consent before a tool runs.
 */
import { show } from "../core/known_options.ts";
import type { Layer, LayerRun } from "../server/engine/layers.ts";
import { layer } from "../server/handlers/layer.ts";
import { type Context, isQuestion, ToolError } from "../library.ts";
import { isMcpError } from "../core/protocol/errors.ts";

/**
 * Creates a layer that asks the user for consent before a tool runs. `question` is a text such as `"Delete all notes?"`,
 * or a function that creates the text from the input. The client shows the question for each call, and the tool runs
 * only if the user accepts. Otherwise, or if the client does not support elicitation, the result tells the model why the
 * tool did not run. For a tool of `planned()`, the question contains the plan.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { confirm } from "@x/mcp/layers";
 *
 * const clear = tool({ name: "clear", use: [confirm("Delete all notes?")], run: () => "Deleted." });
 *
 * export default createServer({ name: "notes", version: "1.0.0", handlers: [clear] });
 * ```
 *
 * @see specification/2026-07-28/client/elicitation
 */
export function confirm<Input = unknown, Services = unknown>(
  question: string | ((input: Input, ctx: Context<Services>) => string | Promise<string>),
): Layer<Input, Services> {
  return layer<Input, Services>(({ key, name }) => ({
    name: "confirm",
    rank: "ask",
    async run({ input, ctx, server, plan }, next) {
      const message: unknown = typeof question === "function" ? await question(input, ctx) : question;
      if (typeof message !== "string" || !message) {
        throw new TypeError(
          `Cannot run ${key}: confirm ${typeof question === "function" ? "returned" : "is"} ${
            show(message)
          }; use a question, such as "Delete all notes?"`,
        );
      }
      const whole = plan === undefined ? message : `${message}\n\n${describePlan(plan)}`;
      const action = await ask(ctx, { key: toKey(ctx, server), name, message: whole });
      if (action === "accept") return await next();
      const state = action === "decline" ? "the user declined" : "the user closed the question";
      throw new ToolError(`${name} did not run: ${state}. Do not call ${name} again unless the user asks you to.`);
    },
  }));
}

/** Maximum length of a plan in a question, in characters. */
const MAX_PLAN = 4000;

function describePlan(plan: unknown): string {
  const text = typeof plan === "string" ? plan : JSON.stringify(plan, undefined, 2);
  const rest = text.length - MAX_PLAN;
  return rest > 0 ? `${text.slice(0, MAX_PLAN).toWellFormed()}… (${rest} more characters)` : text;
}

/** Key of a server's numbers of questions for consent, by the signal of the call. */
const COUNTS = {};

/** Returns the key of the next question. A tool and its server may each have a layer that asks. */
function toKey({ signal }: Context<unknown>, { slot }: LayerRun["server"]): string {
  const counts = slot(COUNTS, () => new WeakMap<AbortSignal, number>());
  const count = (counts.get(signal) ?? 0) + 1;
  counts.set(signal, count);
  return count === 1 ? "tool.confirm" : `tool.confirm ${count}`;
}

interface Consent {
  readonly key: string;
  readonly name: string;
  readonly message: string;
}

async function ask(ctx: Context<unknown>, { key, name, message }: Consent): Promise<string> {
  try {
    // Set `singleUse`, because consent to one run must not count as consent to a later run.
    const options = { message, schema: { type: "object", properties: {} }, singleUse: true } as const;
    return (await ctx.elicit(key, options)).action;
  } catch (error) {
    if (!isMcpError(error) || isQuestion(error) || ctx.signal.aborted) throw error;
    // The client does not support forms, or the request has no session.
    throw new ToolError(
      `${name} did not run: it needs the consent of the user, but this client or this request does not support elicitation. Use a client that supports elicitation.`,
    );
  }
}
