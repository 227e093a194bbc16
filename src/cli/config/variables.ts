/**
 * Environment variables in the entries of other servers.
 */
import type { ReadEnv } from "../../ready/template.ts";

const PLACEHOLDER = /\$\{([^}]*)\}?/g;
const VARIABLE = /^(?:env:)?([A-Za-z_]\w*)(?::-([^]*))?$/;

/** Returns the names of the variables in a text. */
export function listVariables(text: string): readonly string[] {
  return [...text.matchAll(PLACEHOLDER)].flatMap(([, inner]) => VARIABLE.exec(inner)?.[1] ?? []);
}

/**
 * Replaces `${NAME}`, `${NAME:-default}` and `${env:NAME}`, the forms of Claude Code and VS Code.
 *
 * @throws {TypeError} if a variable is not set and has no default, or if `${…}` has another form.
 */
export function expandVariables(text: string, readEnv: ReadEnv): string {
  return text.replaceAll(PLACEHOLDER, (whole, inner: string) => {
    const [, name, fallback] = VARIABLE.exec(inner) ?? [];
    if (name === undefined || !whole.endsWith("}")) throw new TypeError(explainForm(whole, inner));
    const value = readEnv(name) ?? fallback;
    if (value !== undefined) return value;
    throw new TypeError(
      `the environment variable ${name} is not set; set it, or use a default with \${${name}:-default}`,
    );
  });
}

function explainForm(whole: string, inner: string): string {
  return inner.startsWith("input:")
    ? `only an editor can ask for ${whole}; use an environment variable, such as \${API_KEY}`
    : `${whole} is not an environment variable such as \${NAME}; write the value itself`;
}
