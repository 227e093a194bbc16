/**
 * Text templates: `{{name}}` stands for an argument of a call, and `${NAME}` for an environment variable.
 */

/** A template in which environment variables have already been replaced. */
export interface Template {
  /** Names of the arguments in the template, without duplicates. */
  readonly names: readonly string[];
  /** Name of the argument, if the template consists only of one argument. */
  readonly onlyArgument?: string;
  readonly startsWithArgument: boolean;
  /** Replaces each argument with the text that `toText` returns for its name. */
  fill(toText: (name: string) => string): string;
}

/** Reads an environment variable. Returns `undefined` if it is not set. */
export type ReadEnv = (name: string) => string | undefined;

const PLACEHOLDER = /\\(\{\{|\$\{)|\{\{\s*([\w.-]+)\s*\}\}|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}|\{\{|\$\{/g;

/**
 * Parses a template. `\{{` stands for a literal `{{`, and `\${` for a literal `${`. In `${NAME:-default}`, `default` is
 * used if the variable is not set. Without `readEnv`, `${…}` is plain text.
 *
 * @throws {TypeError} if a placeholder is malformed, or a variable is not set and has no default.
 */
export function parseTemplate(text: string, readEnv?: ReadEnv): Template {
  const parts: (string | { readonly name: string })[] = [];
  let at = 0;
  const addText = (literal: string) => {
    const last = parts.length - 1;
    const before = parts[last];
    if (typeof before === "string") parts[last] = before + literal;
    else if (literal) parts.push(literal);
  };
  for (const match of text.matchAll(PLACEHOLDER)) {
    const [whole, escaped, name, variable, fallback] = match;
    addText(text.slice(at, match.index));
    at = match.index + whole.length;
    if (!readEnv && (whole.startsWith("$") || whole === "\\${")) addText(whole);
    else if (escaped) addText(escaped);
    else if (name) parts.push({ name });
    else if (variable && readEnv) addText(readVariable(variable, fallback, readEnv));
    else throw new TypeError(explainMalformed(whole));
  }
  addText(text.slice(at));
  const [first] = parts;
  return {
    names: [...new Set(parts.flatMap((part) => typeof part === "string" ? [] : part.name))],
    onlyArgument: parts.length === 1 && typeof first === "object" ? first.name : undefined,
    startsWithArgument: typeof first === "object",
    fill: (toText) => parts.map((part) => typeof part === "string" ? part : toText(part.name)).join(""),
  };
}

export function listVariables(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].flatMap(([, , , variable]) => variable ?? []);
}

function explainMalformed(start: string): string {
  return start === "{{"
    ? "{{ begins an argument, such as {{name}}; write \\{{ for a literal {{"
    : "${ begins an environment variable, such as ${NAME} or ${NAME:-default}; write \\${ for a literal ${";
}

function readVariable(name: string, fallback: string | undefined, readEnv: ReadEnv): string {
  const value = readEnv(name) ?? fallback;
  if (value !== undefined) return value;
  throw new TypeError(
    `the environment variable ${name} is not set; set it, or use a default with \${${name}:-default}`,
  );
}
