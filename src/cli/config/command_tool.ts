/**
 * Tools that run a program.
 */
import { type Context, type Handler, tool, type ToolResult } from "../../library.ts";
import {
  checkArguments,
  fillWords,
  type ParsedCommand,
  type ParseOptions,
  parseStdin,
  parseWords,
  readUnsafe,
  readVariables,
} from "./command_words.ts";
import { confinePaths, hidePathFormats, listPathArguments } from "./path_arguments.ts";
import { runProgram } from "./program_run.ts";
import type { CommandTool } from "./schema.ts";
import { type Arguments, readToolInput, toArgumentText } from "../../ready/tool_input.ts";

export interface CommandToolOptions extends Omit<ParseOptions, "input"> {
  readonly name: string;
  readonly tool: CommandTool;
  /** The program, as an absolute path if the config file contains a path. */
  readonly program: string;
  readonly cwd: string;
}

/** Creates a tool that runs a program. The words of its command may contain arguments of a call. */
export function commandTool(options: CommandToolOptions): Handler {
  const { name, tool: config, program, cwd, readEnv, toProblem } = options;
  const { run, title, description, annotations, output, stdin, format = "text" } = config;
  const { timeoutMs = 30_000, maxBytes = 262_144, okExitCodes = [0] } = config;
  const input = readToolInput(config.input);
  const parseOptions = { readEnv, input, toProblem };
  const command: ParsedCommand = {
    program,
    words: parseWords(run, parseOptions),
    stdin: stdin === undefined ? undefined : parseStdin(stdin, parseOptions),
    input,
    unsafe: readUnsafe(config.unsafe, parseOptions),
  };
  checkArguments(command, toProblem);
  const paths = listPathArguments(input);
  if (output && format === "text") {
    throw toProblem(["output"], 'an output schema requires JSON output; add "format": "json"');
  }
  const env = readVariables(config.env ?? [], parseOptions);

  async function execute(given: Arguments, ctx: Context): Promise<ToolResult | object> {
    const args = await confinePaths(input.addDefaults(given), paths, cwd);
    const stdinText = command.stdin?.fill((name) => toArgumentText(args[name]));
    const { stdout, stderr, code, killReason } = await runProgram(
      [program, ...fillWords(command, args)],
      { cwd, env, input: stdinText },
      { timeoutMs, maxBytes, signal: ctx.signal },
    );
    const printed = [stdout, stderr].filter(Boolean).join("\n");
    if (killReason) return toFailure(`${printed}\n${killReason}`);
    if (!okExitCodes.includes(code)) return toFailure(`${printed}\n${program} exited with code ${code}.`);
    if (format === "text") return { content: [{ type: "text", text: stdout || stderr }] };
    try {
      return JSON.parse(stdout);
    } catch {
      return toFailure(`${printed}\nThe output of ${program} is not JSON.`);
    }
  }

  return tool({ name, title, description, annotations, input: hidePathFormats(input.schema), output, run: execute });
}

function toFailure(text: string): ToolResult {
  return { content: [{ type: "text", text: text.trim() }], isError: true };
}
