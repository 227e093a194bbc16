/**
 * The words of a command tool. The words are checked when the config file is loaded, and filled with arguments for each
 * call.
 */
import { ToolError } from "../../library.ts";
import { platform } from "../platform.ts";
import { explainArgument, explainInput, mayTakeValue } from "./argument_rules.ts";
import { type KeyPath, type ToProblem, withPath } from "../../ready/problem.ts";
import type { CommandTool } from "./schema.ts";
import type { Source } from "./source.ts";
import { parseTemplate, type ReadEnv, type Template } from "../../ready/template.ts";
import { type Arguments, findUnfillable, toArgumentText, type ToolInput } from "../../ready/tool_input.ts";

export interface WordTemplate {
  readonly template: Template;
  /** The name of an argument. The word is omitted if this argument is missing or `false`. */
  readonly condition?: string;
  readonly path: KeyPath;
}

export interface ParseOptions {
  readonly readEnv: ReadEnv;
  readonly input: ToolInput;
  readonly toProblem: ToProblem;
}

export function readEnv(name: string): string | undefined {
  return platform.env(name);
}

/** Returns the program of a command: a name to look up in PATH, or the absolute path of a file. */
export function toProgram(source: Source, name: string, word: string | object): string {
  const key = ["tools", name, "run", 0];
  if (typeof word !== "string") {
    throw source.toProblem(key, "the program cannot be optional; write the name or path of the program");
  }
  const text = parseTemplate(word, readEnv).fill(() => "");
  return /[\\/]/.test(text) ? source.resolvePath(key, text) : text;
}

export function parseWords(run: CommandTool["run"], options: ParseOptions): readonly WordTemplate[] {
  const { input, toProblem } = options;
  const parse = (text: string, path: KeyPath) => withPath(() => parseTemplate(text, options.readEnv), toProblem, path);
  const words = run.flatMap((word, i): WordTemplate[] => {
    if (typeof word === "string") return [{ template: parse(word, ["run", i]), path: ["run", i] }];
    if (!input.names.includes(word.if)) {
      throw toProblem(["run", i, "if"], `${word.if} is not a property of input; add the property to input`);
    }
    return word.words.map((text, j) => {
      const path = ["run", i, "words", j];
      return { template: parse(text, path), condition: word.if, path };
    });
  });
  const [program, ...rest] = words;
  if (program.condition !== undefined || program.template.names.length) {
    throw toProblem(program.path, "a call must not choose the program; write the name or path of the program");
  }
  for (const { template, condition, path } of rest) {
    const state = findUnfillable(template, input, condition === undefined ? [] : [condition]);
    if (state) throw toProblem(path, state);
  }
  return rest;
}

export function parseStdin(stdin: string, { readEnv, input, toProblem }: ParseOptions): Template {
  const template = withPath(() => parseTemplate(stdin, readEnv), toProblem, ["stdin"]);
  const state = findUnfillable(template, input);
  if (state) throw toProblem(["stdin"], state);
  return template;
}

export interface ParsedCommand {
  readonly program: string;
  readonly words: readonly WordTemplate[];
  readonly stdin?: Template;
  readonly input: ToolInput;
  /** The arguments to which the rules do not apply. */
  readonly unsafe: readonly string[];
}

export function readUnsafe(unsafe: CommandTool["unsafe"], { input, toProblem }: ParseOptions): readonly string[] {
  if (typeof unsafe === "boolean") return unsafe ? input.names : [];
  for (const [i, name] of unsafe?.entries() ?? []) {
    if (!input.names.includes(name)) throw toProblem(["unsafe", i], `${name} is not a property of input; remove it`);
  }
  return unsafe ?? [];
}

/** Rejects a command if a call could use it to set options, to name files and hosts, or to run its own code. */
export function checkArguments({ words, stdin, input, unsafe }: ParsedCommand, toProblem: ToProblem): void {
  const isChecked = (name: string) => !unsafe.includes(name);
  for (const { template: { names, onlyArgument }, path } of words) {
    const name = names.find(isChecked);
    if (name === undefined) continue;
    const state = explainArgument({ name, isPartial: onlyArgument === undefined, ...input.readKind(name) });
    if (state !== undefined) throw toProblem(path, state);
  }
  const name = stdin?.names.find((name) => {
    const { isText, isPath } = input.readKind(name);
    return isChecked(name) && (isText || isPath);
  });
  if (name !== undefined) throw toProblem(["stdin"], explainInput(name));
}

/**
 * Fills the words after the program with the arguments of a call.
 *
 * @throws {ToolError} if a text would become an option, or contains a NUL character.
 */
export function fillWords({ words, program, input }: ParsedCommand, args: Arguments): string[] {
  let optionsEnded = false;
  let last = "";
  return words.flatMap(({ template, condition }) => {
    if (condition !== undefined && (args[condition] === undefined || args[condition] === false)) return [];
    const texts = fillWord(template, args);
    const { onlyArgument, startsWithArgument, names } = template;
    // `--` must be directly before the argument, because a word in between may be a program that reads the following
    // words as options. A `--` after an option may be the option's value.
    if (!names.length) optionsEnded = texts[0] === "--" && !mayTakeValue(last);
    const canBeOption = startsWithArgument && !optionsEnded &&
      (onlyArgument === undefined || input.readKind(onlyArgument).isText);
    for (const text of texts) {
      if (text.includes("\0")) throw new ToolError("Cannot run the program: an argument contains a NUL character");
      // Reject an option, because a call could otherwise set options that the config file does not offer.
      if (canBeOption && text.startsWith("-")) {
        throw new ToolError(
          `Cannot run ${program}: ${names[0]} begins with "-", so the program would read the argument as an option`,
        );
      }
    }
    last = texts.at(-1) ?? last;
    return texts;
  });
}

/** Fills a word. A word that consists only of a list argument becomes one word for each item. */
function fillWord(template: Template, args: Arguments): string[] {
  const value = template.onlyArgument === undefined ? undefined : args[template.onlyArgument];
  if (Array.isArray(value)) return value.map(toArgumentText);
  return [template.fill((name) => toArgumentText(args[name]))];
}

/** Returns the environment of a program: PATH, and the variables that `entries` list. */
export function readVariables(
  entries: readonly string[],
  { readEnv, toProblem }: Pick<ParseOptions, "readEnv" | "toProblem">,
): Record<string, string> {
  const path = readEnv("PATH");
  const variables: Record<string, string> = path === undefined ? {} : { PATH: path };
  for (const [i, entry] of entries.entries()) {
    const at = entry.indexOf("=");
    const name = at < 0 ? entry : entry.slice(0, at);
    // An entry without `=` passes on a variable from the environment of this process.
    const template = at < 0
      ? undefined
      : withPath(() => parseTemplate(entry.slice(at + 1), readEnv), toProblem, ["env", i]);
    if (template?.names.length) {
      throw toProblem(
        ["env", i],
        "a call must not choose environment variables; set a fixed value, or pass the argument through stdin",
      );
    }
    const value = template ? template.fill(() => "") : readEnv(name);
    if (value !== undefined) variables[name] = value;
  }
  return variables;
}
