/**
 * Asks the user for consent before a tool runs. `value_room.ts` loads this file when a tool with `confirm` is first
 * called.
 *
 * @module
 */
import type { Context } from "../core/call/context.ts";
import type { Run } from "../core/visibility/run_steps.ts";
import { show } from "../core/call/known_options.ts";
import { isQuestion } from "../core/call/question.ts";
import { isMcpError, ToolError } from "../protocol/errors.ts";

/** The parts of a tool that {@linkcode runConfirmed} needs. */
export interface Confirmed {
  readonly name: string;
  /** The question, or a function that creates the question from the input. */
  readonly confirm?: string | ((input: never, ctx: Context<never>) => string | Promise<string>);
}

/**
 * Asks the user for consent, and runs the tool if the user accepts.
 *
 * @throws {ToolError} if the user does not accept, or cannot be asked.
 */
export async function runConfirmed(
  { name, confirm }: Confirmed,
  run: Run,
  input: never,
  ctx: Context<never>,
): Promise<unknown> {
  const message: unknown = typeof confirm === "function" ? await confirm(input, ctx) : confirm;
  if (typeof message !== "string" || !message) {
    throw new TypeError(
      `Cannot run tool ${JSON.stringify(name)}: confirm ${typeof confirm === "function" ? "returned" : "is"} ${
        show(message)
      }; use a question, such as "Delete all notes?"`,
    );
  }
  const { action } = await ask(ctx, name, message);
  if (action === "accept") return await run(input, ctx);
  const state = action === "decline" ? "the user declined" : "the user closed the question";
  throw new ToolError(`${name} did not run: ${state}. Do not call ${name} again unless the user asks you to.`);
}

async function ask(ctx: Context<never>, name: string, message: string): Promise<{ readonly action: string }> {
  try {
    // Set `singleUse`, because consent to one run must not count as consent to a later run.
    return await ctx.elicit("tool.confirm", { message, schema: { type: "object", properties: {} }, singleUse: true });
  } catch (error) {
    if (!isMcpError(error) || isQuestion(error) || ctx.signal.aborted) throw error;
    // The client does not support forms, or the request has no session.
    throw new ToolError(
      `${name} did not run: it needs the consent of the user, but this client or this request does not support elicitation. Use a client that supports elicitation.`,
    );
  }
}
