/**
 * Reads the command line of an interpreter and finds the words it takes as code.
 *
 * @module
 */
import { INPUT_IS_CODE, OPTION_HAS_ARGUMENT, PROGRAM_HAS_ARGUMENT, WORD_IS_CODE } from "./code_risk_states.ts";
import { type CommandScan, hasArgument, hasPartialArgument, type InputUse, toOptionName } from "./command_word.ts";
import type { Interpreter, OperandKind } from "./interpreters.ts";

type OptionKind = "code" | "file" | "load" | "value";

/** An option that takes a value. */
interface Option {
  readonly kind: OptionKind;
  /** Whether the value is in the same word as the option. */
  readonly hasValue: boolean;
}

/** Reads the words of an interpreter one after the other. */
export class InterpreterReader {
  /** The kind of the next word, if an option has announced it. */
  #pending: OptionKind | undefined;
  /** Whether a required word holds code or names a script. */
  #hasCode = false;
  #optionsEnded = false;
  #opensOperands = false;
  #takesCode: boolean;
  #operands = 0;
  #firstOperand: OperandKind;
  readonly #scan: CommandScan;
  readonly #interpreter: Interpreter;
  readonly #input: InputUse;

  constructor(scan: CommandScan, interpreter: Interpreter, input: InputUse) {
    this.#scan = scan;
    this.#interpreter = interpreter;
    this.#input = input;
    this.#firstOperand = interpreter.firstOperand;
    this.#takesCode = interpreter.restIsCode ?? false;
  }

  /** Reads the words from `start` on, then standard input. */
  read(start: number): void {
    const { words } = this.#scan;
    for (let at = start; at < words.length; at++) at += this.#readWord(at);
    this.#readInput();
  }

  /** Reads a word; returns how many of the following words were read with it. */
  #readWord(at: number): number {
    const { text } = this.#scan.words[at];
    const isOption = this.#isOption(text);
    if (this.#pending && !(this.#pending === "code" && this.#interpreter.isShell && isOption)) {
      this.#readValue(at, this.#pending);
      return 0;
    }
    if (isOption && text === "--") {
      this.#optionsEnded = true;
      return 0;
    }
    if (isOption) return this.#readOption(at);
    this.#readOperand(at);
    return 0;
  }

  /** Options after a script belong to the script. Programs that take no script accept options after operands too. */
  #isOption(text: string): boolean {
    const { codeNames, fileNames, restIsCode } = this.#interpreter;
    if (this.#optionsEnded) return false;
    if (codeNames?.test(toOptionName(text)) || fileNames?.test(toOptionName(text))) return true;
    if (!/^[-+]./.test(text)) return false;
    return this.#operands === 0 || this.#firstOperand !== "script" && !restIsCode;
  }

  #readOption(at: number): number {
    const { text } = this.#scan.words[at];
    const { openLetters = "", valueNames } = this.#interpreter;
    if (/^-[^-]/.test(text) && [...text].some((letter) => openLetters.includes(letter))) this.#opensOperands = true;
    const option = this.#findOption(text);
    if (option?.kind === "value") {
      if (option.hasValue) return 0;
      // `jq --arg name value` takes two words.
      return /^--(arg|argjson|slurpfile|rawfile)$/.test(text) && valueNames ? 2 : 1;
    }
    if (option?.hasValue) {
      this.#readValue(at, option.kind);
      return 0;
    }
    if (hasArgument(text)) this.#scan.addError(at, OPTION_HAS_ARGUMENT);
    if (option) this.#pending = option.kind;
    return 0;
  }

  #findOption(text: string): Option | undefined {
    const { clusters = true } = this.#interpreter;
    const { codeNames, fileNames, loadNames, valueNames } = this.#interpreter;
    const name = toOptionName(text);
    const hasValue = text.includes("=");
    if (codeNames?.test(name)) return { kind: "code", hasValue };
    if (fileNames?.test(name)) return { kind: "file", hasValue };
    if (loadNames?.test(name)) return { kind: "load", hasValue };
    if (valueNames?.test(name)) return { kind: "value", hasValue };
    if (!/^-[^-]/.test(text) || !clusters && text.length > 2 && !hasArgument(text)) return;
    return this.#findLetter(clusters ? text : text.slice(0, 2), text);
  }

  /** The first letter of an option word that takes a value. */
  #findLetter(letters: string, text: string): Option | undefined {
    const { codeLetters = "", fileLetters = "", loadLetters = "", valueLetters = "", attachedLetters = "", isShell } =
      this.#interpreter;
    for (let i = 1; i < letters.length; i++) {
      const letter = letters[i];
      const rest = text.slice(i + 1);
      if (attachedLetters.includes(letter)) return rest ? { kind: "value", hasValue: true } : undefined;
      if (codeLetters.includes(letter)) {
        // The value is in a later word for shells, and for letters that all announce code, such as `node -pe`.
        const hasValue = !isShell && [...rest].some((each) => !codeLetters.includes(each));
        return { kind: "code", hasValue };
      }
      if (fileLetters.includes(letter)) return { kind: "file", hasValue: rest !== "" };
      if (loadLetters.includes(letter)) return { kind: "load", hasValue: rest !== "" };
      if (valueLetters.includes(letter) && !(isShell && rest)) return { kind: "value", hasValue: rest !== "" };
    }
  }

  #readValue(at: number, kind: OptionKind): void {
    const { text, isOptional } = this.#scan.words[at];
    if (this.#isWritable(text)) this.#scan.addError(at, kind === "code" ? WORD_IS_CODE : PROGRAM_HAS_ARGUMENT);
    // If a call leaves this word out, the next word takes its place.
    if (isOptional) return;
    this.#pending = undefined;
    if (kind !== "code" && kind !== "file") return;
    this.#hasCode = true;
    if (kind === "file") this.#takesCode = false;
    if (this.#interpreter.codeEndsOptions) this.#optionsEnded = true;
  }

  #readOperand(at: number): void {
    const { addError, addWarning, words } = this.#scan;
    const { text, isOptional } = words[at];
    const canBeSubcommand = !this.#operands && !this.#hasCode && !hasArgument(text);
    const subcommand = canBeSubcommand ? this.#interpreter.subcommands?.[text] : undefined;
    if (subcommand !== undefined) {
      this.#firstOperand = subcommand;
      return;
    }
    this.#operands++;
    if (this.#operands === 1 && !this.#hasCode && this.#firstOperand !== "data") {
      const state = this.#firstOperand === "code" ? WORD_IS_CODE : PROGRAM_HAS_ARGUMENT;
      if (this.#isWritable(text)) addError(at, state);
      // A dash is standard input.
      if (isOptional || text === "-") this.#operands = 0;
      else this.#hasCode = true;
    } else if (this.#takesCode && (this.#operands > 1 || this.#firstOperand !== "data")) {
      if (this.#isWritable(text)) addError(at, WORD_IS_CODE);
      this.#hasCode = true;
    } else if (this.#opensOperands && hasArgument(text)) addError(at, WORD_IS_CODE);
    else if (hasPartialArgument(text)) addWarning(at);
  }

  /** Whether a call can write into a word, directly or through standard input that replaces a placeholder. */
  #isWritable(text: string): boolean {
    const { placeholder } = this.#input;
    if (hasArgument(text)) return true;
    return placeholder !== undefined && text.includes(placeholder) && hasArgument(this.#scan.stdin);
  }

  #readInput(): void {
    if (!hasArgument(this.#scan.stdin)) return;
    const { isAppended, placeholder } = this.#input;
    // Appended input becomes the last words of the command.
    const isLastWordCode = this.#pending || this.#takesCode || !this.#hasCode && this.#firstOperand !== "data";
    const isCode = isAppended
      ? isLastWordCode && placeholder === undefined
      : this.#interpreter.readsStdin && !this.#hasCode;
    if (isCode) this.#scan.risks.push({ level: "error", state: INPUT_IS_CODE });
  }
}
