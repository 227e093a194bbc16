/**
 * Finds arguments of a call that a program would read as code.
 *
 * Programs get their words unchanged, and no shell interprets them. But many programs read some of their words as code,
 * and a call that can write part of that code can run anything.
 *
 * @module
 */
import { ARGUMENT_IS_PARTIAL, PROGRAM_HAS_ARGUMENT, VARIABLE_LOADS_CODE, WORD_IS_CODE } from "./code_risk_states.ts";
import {
  type CodeRisk,
  type CommandScan,
  type CommandWord,
  findProgram,
  hasArgument,
  hasPartialArgument,
  type InputUse,
  toOptionName,
  toProgramName,
} from "./command_word.ts";
import { InterpreterReader } from "./interpreter_reader.ts";
import { type Interpreter, INTERPRETERS } from "./interpreters.ts";
import { CODE_VARIABLES, HARMLESS_PROGRAMS, type Wrapper, WRAPPERS } from "./wrappers.ts";

/** Finds the words into which a call may be able to write code. Errors come first. */
export function findCodeRisks(words: readonly CommandWord[], stdin = ""): readonly CodeRisk[] {
  const risks: CodeRisk[] = [];
  const scan: CommandScan = {
    words,
    stdin,
    risks,
    addError: (word, state) => void risks.push({ level: "error", word, state }),
    addWarning: (word) => void risks.push({ level: "warning", word, state: ARGUMENT_IS_PARTIAL }),
  };
  readCommand(scan, 0, { isAppended: false });
  return risks.sort((a, b) => Number(a.level === "warning") - Number(b.level === "warning"));
}

/** Reads a command whose program is the word at `start`. */
function readCommand(scan: CommandScan, start: number, input: InputUse): void {
  const { words, addError } = scan;
  let at = start;
  // If a call leaves an optional program out, the next word becomes the program.
  while (at < words.length && words[at].isOptional) {
    if (hasArgument(words[at].text)) addError(at, PROGRAM_HAS_ARGUMENT);
    at++;
  }
  const word = words[at];
  if (!word) return;
  if (hasArgument(word.text)) return addError(at, PROGRAM_HAS_ARGUMENT);
  const name = toProgramName(word.text);
  const wrapper = findProgram(WRAPPERS, name);
  if (wrapper) return readWrapper(scan, at + 1, { name, wrapper, input });
  const interpreter = findProgram(INTERPRETERS, name);
  if (interpreter) return new InterpreterReader(scan, interpreter, input).read(at + 1);
  if (/^g?find$|^(fd|fdfind)$/.test(name)) return readFind(scan, at + 1);
  readUnknown(scan, at + 1, name);
}

function readWrapper(
  scan: CommandScan,
  start: number,
  { name, wrapper, input }: { readonly name: string; readonly wrapper: Wrapper; readonly input: InputUse },
): void {
  const { words, addError, addWarning } = scan;
  let { operands } = wrapper;
  let { placeholder } = input;
  for (let at = start; at < words.length; at++) {
    const { text } = words[at];
    if (wrapper.codeOptions?.test(text)) {
      // The command line is in this word or the next one.
      for (const each of [at, at + 1]) if (hasArgument(words[each]?.text)) addError(each, WORD_IS_CODE);
      continue;
    }
    if (text.startsWith("-") && text !== "-" && text !== "--") {
      if (hasArgument(text)) addWarning(at);
      if (name === "xargs") placeholder = readPlaceholder(text, words[at + 1]?.text, placeholder);
      if (wrapper.valueOptions.includes(text)) at++;
      continue;
    }
    if (text === "--") continue;
    const [, variable] = wrapper.setsVariables ? /^(\w+)=/.exec(text) ?? [] : [];
    if (variable !== undefined) {
      if (hasArgument(text) && CODE_VARIABLES.test(variable)) addError(at, VARIABLE_LOADS_CODE);
      continue;
    }
    if (operands-- > 0) {
      if (hasPartialArgument(text)) addWarning(at);
      continue;
    }
    return readCommand(scan, at, name === "xargs" ? { isAppended: true, placeholder } : { ...input, placeholder });
  }
}

/** The text that `xargs` replaces with its input, after an option. */
function readPlaceholder(option: string, next: string | undefined, current: string | undefined): string | undefined {
  const attached = /^(?:-I|-i|--replace=?)(.+)$/.exec(option)?.[1];
  if (attached !== undefined) return attached;
  if (option === "-I") return next;
  return /^(-i|--replace)$/.test(option) ? "{}" : current;
}

/** Reads the words of `find`. Words after `-exec` are a command. */
function readFind(scan: CommandScan, start: number): void {
  const { words, addWarning } = scan;
  for (let at = start; at < words.length; at++) {
    const { text } = words[at];
    if (/^(-(exec|execdir|ok|okdir|x|X)|--exec(-batch)?)$/.test(text)) {
      let end = at + 1;
      while (end < words.length && !/^[;+]$/.test(words[end].text)) end++;
      readCommand({ ...scan, words: words.slice(0, end) }, at + 1, { isAppended: false });
      at = end;
    } else if (hasPartialArgument(text)) addWarning(at);
  }
}

/** Reads the words of an unknown program, which may run an interpreter named among them. */
function readUnknown(scan: CommandScan, start: number, name: string): void {
  const { words, addWarning } = scan;
  const isHarmless = HARMLESS_PROGRAMS.test(name);
  for (let at = start; at < words.length; at++) {
    const { text } = words[at];
    if (hasPartialArgument(text) && !isHarmless) addWarning(at);
    const interpreter = hasArgument(text) || isHarmless ? undefined : findProgram(INTERPRETERS, toProgramName(text));
    if (interpreter && words.slice(at + 1).some(({ text }) => announcesCode(text, interpreter))) {
      return new InterpreterReader(scan, interpreter, { isAppended: false }).read(at + 1);
    }
  }
}

function announcesCode(
  text: string,
  { codeLetters = "", codeNames, clusters = true, subcommands = {} }: Interpreter,
): boolean {
  if (codeNames?.test(toOptionName(text)) || subcommands[text] === "code") return true;
  return /^-[^-]/.test(text) &&
    [...clusters ? text.slice(1) : text.slice(1, 2)].some((letter) => codeLetters.includes(letter));
}
