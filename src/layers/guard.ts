/**
 * Checks the input and the output of handlers.
 */
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { Layer, OutputPart, Steps } from "../server/engine/layers.ts";
import { layer } from "../server/handlers/layer.ts";
import type { Context } from "../library.ts";

/**
 * Checks an input after its validation. Returns a changed input, or `undefined` to leave the input unchanged. Throw a
 * `ToolError` to refuse the call with a message for the model.
 */
export type InputGuard<Input = unknown, Services = unknown> = (
  input: Input,
  ctx: Context<Services>,
) => NoInfer<Input> | void | Promise<NoInfer<Input> | void>;

/**
 * Checks everything that a client receives from a handler and from the handler's middleware and services: the encoded
 * value, errors, questions, log messages and progress messages. `part` states what `output` is. Returns a changed value,
 * or `undefined` to leave the value unchanged. Throw a `ToolError` to refuse the call with a message for the model, also
 * if the handler catches the error of its question. If the guard throws for a log or progress message, the server drops
 * this message, and the handler continues. Messages that the guard itself sends with `ctx` pass no guards.
 */
export type OutputGuard<Services = unknown> = (
  output: unknown,
  ctx: Context<Services>,
  part: OutputPart,
) => unknown;

/**
 * Guards for the input and the output. The guards in a list run in the order of the list. `Shared` is the type of
 * `ctx.services` without the services that live for one call.
 */
export interface GuardOptions<Input = unknown, Services = unknown, Shared = unknown> {
  /**
   * Input guards, which run after the input was validated and before the services that live for one call are created.
   * The input of a resource is its URI, and the input of a template is the template's variables.
   */
  readonly input?: readonly InputGuard<Input, Shared>[];
  /**
   * Output guards, which run after the encoders, and before the output is validated and copied to text. Output guards
   * also check the handler's errors, questions, log messages and progress messages.
   */
  readonly output?: readonly OutputGuard<Services>[];
}

const OPTIONS: KnownOptions<keyof GuardOptions> = {
  names: { input: "functions", output: "functions" },
  hints: { before: "input", after: "output" },
};

/**
 * Creates a layer that checks the input and the output of handlers, and can change or refuse them.
 *
 * ```ts
 * import { createServer, tool, ToolError } from "@x/mcp";
 * import { guard } from "@x/mcp/layers";
 * import { z } from "zod";
 *
 * const echo = tool({
 *   name: "echo",
 *   input: z.object({ text: z.string() }),
 *   use: [guard({
 *     input: [({ text }) => {
 *       if (text.includes("password")) throw new ToolError("Do not send passwords.");
 *     }],
 *   })],
 *   run: ({ text }) => text,
 * });
 *
 * export default createServer({ name: "s", version: "1.0.0", handlers: [echo] });
 * ```
 *
 * @throws {TypeError} if an option is unknown, or not a list of functions.
 */
export function guard<Input = unknown, Services = unknown, Shared = unknown>(
  options: GuardOptions<Input, Services, Shared>,
): Layer<Input, Services, Shared> {
  checkOptions("make a guard", options, OPTIONS);
  const { input = [], output = [] } = options;
  const steps: Steps<Input, Services, undefined, Shared> = {
    name: "guard",
    onInput: input.length > 1 ? (value, ctx) => passInput(value, input, ctx) : input[0],
    onOutput: output.length > 1 ? (value, ctx, part) => passOutput(value, output, ctx, part) : output[0],
  };
  return layer<Input, Services, undefined, Shared>(() => steps);
}

async function passInput<Input, Shared>(
  given: Input,
  guards: readonly InputGuard<Input, Shared>[],
  ctx: Context<Shared>,
): Promise<unknown> {
  let value = given;
  for (const guard of guards) {
    const passed: unknown = await guard(value, ctx);
    // The server refuses a call if an error, or a boolean, replaces an input of another type.
    if (typeof passed === "boolean" && typeof value !== "boolean" || passed instanceof Error) return passed;
    if (passed !== undefined) value = passed as Input; // The cast is safe, because of the type of the guard.
  }
  return value;
}

async function passOutput<Services>(
  given: unknown,
  guards: readonly OutputGuard<Services>[],
  ctx: Context<Services>,
  part: OutputPart,
): Promise<unknown> {
  let value = given;
  for (const guard of guards) {
    const passed = await guard(value, ctx, part);
    if (passed !== undefined) value = passed;
  }
  return value;
}
