/**
 * Tools that run a program.
 *
 * @module
 */
import { type Context, type Handler, tool, ToolError, type ToolResult } from "../../library.ts";
import { platform } from "../platform.ts";
import type { Spawned } from "../platform_process.ts";
import { findMissing, type Input, toArgumentText, toInput } from "./arguments.ts";
import { ARGUMENT, findCode } from "./code_guard.ts";
import type { CommandTool } from "./schema.ts";
import { type ReadEnv, type Template, toTemplate } from "./template.ts";

/** Where a tool is made. */
export interface CommandToolOptions {
  readonly name: string;
  readonly tool: CommandTool;
  /** The program, with its path if the file says one. */
  readonly program: string;
  readonly cwd: string;
  readonly env: ReadEnv;
  /** An error about a part of the tool. */
  readonly refuse: (path: readonly (string | number)[], state: string) => Error;
  /** Told of what should be looked at. */
  readonly warn?: (path: readonly (string | number)[], state: string) => void;
}

interface Word {
  readonly template: Template;
  /** The argument without which it is left out. */
  readonly needs?: string;
  readonly path: readonly (string | number)[];
}

const END_GRACE_MS = 1000;

/** A tool that runs a program, with arguments in some of its words. */
export function commandTool({ name, tool: told, program, cwd, env, refuse, warn }: CommandToolOptions): Handler {
  const { run, title, description, annotations, output, stdin, format = "text" } = told;
  const { timeoutMs = 30_000, maxBytes = 262_144, okExitCodes = [0] } = told;
  const input = toInput(told.input);
  const words = readWords(run, { env, input, refuse });
  const stdinTemplate = stdin === undefined ? undefined : attempt(() => toTemplate(stdin, env), refuse, ["stdin"]);
  const missing = stdinTemplate && findMissing(stdinTemplate, input);
  if (missing) throw refuse(["stdin"], missing);
  checkCode([program, words], stdinTemplate, { refuse, warn });
  if (output && format === "text") throw refuse(["output"], 'it needs a result that is JSON; add "format": "json"');
  const variables = readVariables(told.env ?? [], env, refuse);

  async function execute(given: Readonly<Record<string, unknown>>, ctx: Context): Promise<ToolResult | object> {
    const args = input.complete(given);
    const child = start([program, ...fillWords(words, args, program)], {
      cwd,
      env: variables,
      input: stdinTemplate?.fill((name) => toArgumentText(args[name])) ?? undefined,
    });
    const { stdout, stderr, code, stopped } = await finish(child, { timeoutMs, maxBytes, signal: ctx.signal });
    const told = [stdout, stderr].filter(Boolean).join("\n");
    if (stopped) return toFailure(`${told}\n${stopped}`);
    if (!okExitCodes.includes(code)) return toFailure(`${told}\n${program} ended with exit code ${code}.`);
    if (format === "text") return { content: [{ type: "text", text: stdout || stderr }] };
    try {
      return JSON.parse(stdout);
    } catch {
      return toFailure(`${told}\nThe output of ${program} is not JSON.`);
    }
  }

  return tool({ name, title, description, annotations, input: input.schema, output, run: execute });
}

function readWords(
  run: CommandTool["run"],
  { env, input, refuse }: {
    readonly env: ReadEnv;
    readonly input: Input;
    readonly refuse: CommandToolOptions["refuse"];
  },
): readonly Word[] {
  const words = run.flatMap((word, i): Word[] => {
    if (typeof word === "string") return [{ template: read(word, ["run", i]), path: ["run", i] }];
    if (!input.names.includes(word.if)) {
      throw refuse(["run", i, "if"], `there is no property ${word.if} of input; add it there`);
    }
    return word.words.map((text, j) => {
      const path = ["run", i, "words", j];
      return { template: read(text, path), needs: word.if, path };
    });
  });
  function read(text: string, path: Word["path"]): Template {
    return attempt(() => toTemplate(text, env), refuse, path);
  }

  const [program, ...rest] = words;
  if (program.needs !== undefined || program.template.names.length) {
    throw refuse(program.path, "it is the program, which a call may not choose; write its name or path");
  }
  for (const { template, needs, path } of rest) {
    const missing = findMissing(template, input, needs === undefined ? [] : [needs]);
    if (missing) throw refuse(path, missing);
  }
  return rest;
}

/** Refuses what would let calls run code of their own, and warns of what might. */
function checkCode(
  [program, words]: readonly [string, readonly Word[]],
  stdin: Template | undefined,
  { refuse, warn }: Pick<CommandToolOptions, "refuse" | "warn">,
): void {
  const toText = (template: Template) => template.fill(() => ARGUMENT);
  const given = words.map(({ template, needs }) => ({ text: toText(template), isOptional: needs !== undefined }));
  const risks = findCode([{ text: program, isOptional: false }, ...given], stdin && toText(stdin));
  for (const { level, word, state } of risks) {
    const path = word === undefined ? ["stdin"] : words[word - 1].path;
    if (level === "error") throw refuse(path, state);
    warn?.(path, state);
  }
}

function fillWords(words: readonly Word[], args: Readonly<Record<string, unknown>>, program: string): string[] {
  let isOver = false;
  return words.flatMap(({ template, needs }) => {
    if (needs !== undefined && (args[needs] === undefined || args[needs] === false)) return [];
    const texts = toTexts(template, args);
    for (const text of texts) {
      if (text.includes("\0")) throw new ToolError("Cannot run the program: an argument has a NUL character");
      // It would be an option that whoever wrote the file did not mean to offer.
      if (template.opens && !isOver && text.startsWith("-")) {
        const [name] = template.names;
        throw new ToolError(`Cannot run ${program}: ${name} begins with "-", which would make it an option`);
      }
    }
    if (!template.names.length && texts[0] === "--") isOver = true;
    return texts;
  });
}

// A list that stands alone is as many words as it has items.
function toTexts(template: Template, args: Readonly<Record<string, unknown>>): string[] {
  const sole = template.sole === undefined ? undefined : args[template.sole];
  if (Array.isArray(sole)) return sole.map(toArgumentText);
  return [template.fill((name) => toArgumentText(args[name]))];
}

function readVariables(list: readonly string[], env: ReadEnv, refuse: CommandToolOptions["refuse"]) {
  const path = env("PATH");
  const variables: Record<string, string> = path === undefined ? {} : { PATH: path };
  for (const [i, entry] of list.entries()) {
    const at = entry.indexOf("=");
    const name = at < 0 ? entry : entry.slice(0, at);
    // A name alone hands on what there is.
    const value = at < 0
      ? env(name)
      : attempt(() => toTemplate(entry.slice(at + 1), env), refuse, ["env", i]).fill(() => "");
    if (value !== undefined) variables[name] = value;
  }
  return variables;
}

function start(words: readonly string[], options: Parameters<typeof platform.spawn>[1]): Spawned {
  try {
    return platform.spawn(words, options);
  } catch (error) {
    throw new ToolError(`Cannot run ${words[0]}: ${error instanceof Error ? error.message : error}`);
  }
}

interface Finished {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number;
  /** Why it was ended, if it was. */
  readonly stopped?: string;
}

interface FinishOptions {
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

async function finish(child: Spawned, { timeoutMs, maxBytes, signal }: FinishOptions): Promise<Finished> {
  let stopped: string | undefined;
  let force: ReturnType<typeof setTimeout> | undefined;
  const given = new AbortController();
  const stop = (why: string) => {
    if (stopped !== undefined) return;
    stopped = why;
    child.kill("SIGTERM");
    force = setTimeout(() => child.kill("SIGKILL"), END_GRACE_MS);
  };
  const timer = setTimeout(() => stop(`It was ended after ${timeoutMs} ms (timeoutMs).`), timeoutMs);
  const cancel = () => stop("It was ended because the call was cancelled.");
  signal.addEventListener("abort", cancel);
  if (signal.aborted) cancel();
  const room = { left: maxBytes };
  const tooMuch = () => stop(`It was ended after ${maxBytes} bytes of output (maxBytes).`);
  const reading = Promise.all([
    collect(child.stdout, room, given.signal, tooMuch),
    collect(child.stderr, room, given.signal, tooMuch),
  ]);
  const code = await child.ended;
  clearTimeout(timer);
  clearTimeout(force);
  signal.removeEventListener("abort", cancel);
  // What the program started may hold its output open for as long as it likes.
  const late = setTimeout(() => given.abort(), END_GRACE_MS);
  const [stdout, stderr] = await reading;
  clearTimeout(late);
  return { stdout: stdout.trimEnd(), stderr: stderr.trimEnd(), code, stopped };
}

async function collect(
  stream: ReadableStream<Uint8Array>,
  room: { left: number },
  given: AbortSignal,
  tooMuch: () => void,
): Promise<string> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  given.addEventListener("abort", leave);
  let text = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value.subarray(0, Math.max(0, room.left)), { stream: true });
    room.left -= value.length;
    if (room.left < 0) tooMuch();
  }
}

function toFailure(text: string): ToolResult {
  return { content: [{ type: "text", text: text.trim() }], isError: true };
}

function attempt<T>(make: () => T, refuse: CommandToolOptions["refuse"], path: readonly (string | number)[]): T {
  try {
    return make();
  } catch (error) {
    throw refuse(path, error instanceof Error ? error.message : String(error));
  }
}
