/**
 * Texts with places to fill: `{{name}}` stands for an argument of a call, `${NAME}` for a variable of the environment.
 *
 * @module
 */

/** A text with places for arguments. Variables of the environment are in it already. */
export interface Template {
  /** The arguments that it names, each once. */
  readonly names: readonly string[];
  /** The argument that the whole text stands for, if it is nothing but that. */
  readonly sole?: string;
  /** Whether the text begins with an argument. */
  readonly opens: boolean;
  /** The text with what `value` gives in the places of arguments. */
  fill(value: (name: string) => string): string;
}

/** Reads a variable of the environment. */
export type ReadEnv = (name: string) => string | undefined;

const MARK = /\\(\{\{|\$\{)|\{\{\s*([\w.-]+)\s*\}\}|\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}|\{\{|\$\{/g;

/**
 * Reads a text with places. `\{{` and `\${` stand for themselves; `${NAME:-else}` has a text for a variable that is not
 * set. Without `env`, `${…}` is text like any other.
 *
 * @throws {TypeError} for a place that cannot be read, and for a variable that is not set.
 */
export function toTemplate(text: string, env?: ReadEnv): Template {
  const parts: (string | { readonly name: string })[] = [];
  let at = 0;
  const add = (literal: string) => {
    const last = parts.length - 1;
    const before = parts[last];
    if (typeof before === "string") parts[last] = before + literal;
    else if (literal) parts.push(literal);
  };
  for (const match of text.matchAll(MARK)) {
    const [whole, escaped, name, variable, fallback] = match;
    add(text.slice(at, match.index));
    at = match.index + whole.length;
    if (!env && (whole.startsWith("$") || whole === "\\${")) add(whole);
    else if (escaped) add(escaped);
    else if (name) parts.push({ name });
    else if (variable && env) add(readVariable(variable, fallback, env));
    else {
      throw new TypeError(
        whole === "{{"
          ? "{{ begins an argument, such as {{name}}; write \\{{ for the two characters"
          : "${ begins a variable of the environment, such as ${NAME} or ${NAME:-else}; write \\${ for the two characters",
      );
    }
  }
  add(text.slice(at));
  const [first] = parts;
  return {
    names: [...new Set(parts.flatMap((part) => typeof part === "string" ? [] : part.name))],
    sole: parts.length === 1 && typeof first === "object" ? first.name : undefined,
    opens: typeof first === "object",
    fill: (value) => parts.map((part) => typeof part === "string" ? part : value(part.name)).join(""),
  };
}

/** The variables of the environment that a text names. */
export function listVariables(text: string): string[] {
  return [...text.matchAll(MARK)].flatMap(([, , , variable]) => variable ?? []);
}

function readVariable(name: string, fallback: string | undefined, env: ReadEnv): string {
  const value = env(name) ?? fallback;
  if (value !== undefined) return value;
  throw new TypeError(
    `the environment has no ${name}; set it, or write \${${name}:-else} for what stands in its place`,
  );
}
