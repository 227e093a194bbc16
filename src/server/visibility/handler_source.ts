/**
 * Finds likely mistakes in the source of a handler's function.
 */
import { LOG_LEVELS } from "../../core/protocol/types.ts";

/** Returns the warnings about the source of a handler's function. `feature` is the handler's kind, such as `tools`. */
export function listSourceWarnings(source: string, feature: string): readonly string[] {
  return [...findDeprecated(source), ...feature === "tools" && returnsOnlyLink(source) ? [ONLY_LINK] : []];
}

/**
 * Names the deprecated features of the protocol that the source of a function uses. Does not find their use under
 * another name, or in functions that it calls.
 *
 * @see specification/2026-07-28/deprecated
 */
function findDeprecated(source: string): readonly string[] {
  const parameters = source.slice(0, Math.max(0, source.search(/=>|\)\s*\{/)));
  // A bundler may have renamed a parameter, such as `{ log: log2 }`.
  const find = (name: string) => new RegExp(`\\b${name}\\b(?:\\s*:\\s*(\\w+))?`).exec(parameters);
  const [, sample = "sample"] = find("sample") ?? [];
  const [, roots = "roots"] = find("roots") ?? [];
  // A variable `log` outside of the function is not the log of the context.
  const [isParameter, log = "log"] = find("log") ?? [];
  const logging = `${isParameter ? "\\b" : "\\.\\s*"}${log}\\s*\\.\\s*(?:${LOG_LEVELS.join("|")})\\s*\\(`;
  return [
    ...new RegExp(`\\b${sample}\\s*\\(\\s*["'\`]`).test(source)
      ? [`it uses sampling, ${DEPRECATED}; call the API of a model provider`]
      : [],
    ...new RegExp(`\\b${roots}\\s*\\(\\s*\\)`).test(source)
      ? [`it uses roots, ${DEPRECATED}; take paths as arguments, resource URIs or configuration`]
      : [],
    ...new RegExp(logging).test(source)
      ? [`it sends log messages to clients, ${DEPRECATED}; write to standard error, or use @x/mcp/observe`]
      : [],
  ];
}

const DEPRECATED = "which the protocol deprecates";

const ONLY_LINK = "it returns only a resource link, which some clients do not pass to the model; " +
  "return a text too, such as [`Saved ${title}.`, resourceLink(uri)]";

/** Also for a list of links. Does not find links under another name, or in functions that the source calls. */
function returnsOnlyLink(source: string): boolean {
  const head = source.slice(0, Math.max(0, source.indexOf("=>")));
  const body = source.slice(head.length + 2).trimStart();
  // An arrow with an open brace before it is inside the body of another function.
  const isExpression = head.split("{").length === head.split("}").length && !body.startsWith("{");
  const returned = [...source.matchAll(/\breturn\b\s*([^;]*)/g)].map(([, text]) => text);
  return [...isExpression ? [body] : [], ...returned].some((text) =>
    /^(await\s+)?(resourceLink\s*\(|[^[{(][^;]*=>\s*resourceLink\s*\()/.test(text)
  );
}
