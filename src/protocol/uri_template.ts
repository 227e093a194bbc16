/**
 * URI templates (RFC 6570, levels 1 to 3) that expand to URIs and match them.
 *
 * RFC 6570 defines expansion only. A template is rejected if one of its URIs could be matched in more than one way.
 *
 * @see specification/2026-07-28/server/resources (Resource Templates)
 * @module
 */

/** A parsed template. Made by {@linkcode parseTemplate}. */
export interface UriTemplate {
  /** Source text of the template. */
  readonly template: string;
  /** Names of the variables, in the order of the template. */
  readonly variables: readonly string[];
  /**
   * Matches a URI, and returns its variables, percent-decoded, in an object without a prototype. Returns `undefined` if
   * the URI does not match. Takes time linear in the length of the URI.
   *
   * - Query and `;` parameters may come in any order, and may be absent. A URI with unknown parameters does not match.
   * - A variable ends at the first occurrence of the literal text that follows it. After a `{+name}`, it ends at the
   *   last occurrence.
   * - A variable of the path is never empty. Only a `{+name}` can contain a raw `?` or `#`.
   * - Outside of the query, no value can leave its folder, even if encoded. NUL and `..` segments never match. A plain
   *   value also has no slash, no backslash, and is not `.`.
   */
  match(uri: string): Record<string, string> | undefined;
  /** Expands the template with these values, as RFC 6570 defines. A variable without a value is omitted. */
  expand(values: Readonly<Record<string, string | undefined>>): string;
  /**
   * Builds the URI for these values, from which {@linkcode match} reads the same values. `name` names the resource in
   * error messages.
   *
   * @throws {TypeError} if a variable of the path is missing or a variable is unknown, or if a value is not a string or
   * would not be read back unchanged.
   */
  build(values: Readonly<Record<string, string | undefined>>, name: string): string;
}

/** Names in a comma-separated list: `NameList<"a,b">` is `"a" | "b"`. */
export type NameList<L extends string> = L extends `${infer Name},${infer Rest}` ? Name | NameList<Rest> : L;

/**
 * Variables of a literal template as an object type. `TemplateVariables<"repo://{owner}/{name}{?ref}">` is
 * `{ owner: string } & { name: string } & { ref?: string }`. A template that is not a literal allows any names.
 */
export type TemplateVariables<T extends string> = string extends T ? { readonly [name: string]: string }
  : T extends `${string}{${infer E}}${infer Rest}` ?
      & (E extends `${"?" | "&" | ";"}${infer L}` ? { readonly [N in NameList<L>]?: string }
        : E extends `${"+" | "#" | "." | "/"}${infer L}` ? { readonly [N in NameList<L>]: string }
        : { readonly [N in NameList<E>]: string })
      & TemplateVariables<Rest>
  : Record<never, string>;

type Values = Readonly<Record<string, string | undefined>>;

// Limits the searches that one URI can cause. Real templates have far fewer variables.
const MAX_VARIABLES = 50;

/**
 * Parses a template: `{a}`, `{+a}`, `{#a}`, `{.a}`, `{/a}`, lists such as `{a,b}`, and at the end `{;a,b}`, then
 * `{?a,b}` or `{&a}`.
 *
 * @throws {TypeError} for `{a*}` and `{a:3}`, unbalanced braces, duplicate names, ambiguous expressions (such as a
 * second `{+a}` or `{#a}`), and more than 50 variables.
 */
export function parseTemplate(template: string): UriTemplate {
  const refuse = (state: string) => new TypeError(`Cannot parse URI template ${JSON.stringify(template)}: ${state}`);
  const writers: ((values: Values) => string)[] = [];
  const variables: string[] = [];
  const parameters: { readonly operator: string; readonly names: readonly string[]; readonly skip: number }[] = [];
  // The path is literals[0] path[0] literals[1] path[1] … and ends with a literal.
  const literals = [""];
  const path: string[] = [];
  let wide: string | undefined;

  template.split(/\{([^{}]*)\}/).forEach((piece, index) => {
    const operator = index % 2 ? /^[+#./;?&]/.exec(piece)?.[0] ?? "" : piece;
    if (parameters[0] && piece && (parameters[0].operator !== ";" || !/^[?&]$/.test(operator))) {
      throw refuse(`"${piece}" follows the parameters; end with one {;…}, then one {?…} or {&…}`);
    }
    if (index % 2 === 0) {
      if (/[{}]/.test(piece)) throw refuse("a brace is unbalanced; write variables as {name}");
      literals[path.length] += piece;
      writers.push(() => piece);
      return;
    }
    const names = piece.slice(operator.length).split(",");
    for (const name of names) {
      if (/[*:]/.test(name)) throw refuse(`{${piece}} cannot be matched; leave out * and :length`);
      if (!/^\w+(\.\w+)*$/.test(name)) throw refuse(`{${piece}} lacks a name; use letters, digits and _`);
      if (variables.includes(name)) throw refuse(`"${name}" is used twice; rename one`);
      if (variables.push(name) > MAX_VARIABLES) throw refuse(`more than ${MAX_VARIABLES} variables; use fewer`);
    }
    const open = /[+#]/.test(operator);
    const named = /[;?&]/.test(operator);
    const first = operator === "+" ? "" : operator;
    const next = operator === "?" ? "&" : open || !operator ? "," : operator;
    writers.push((values) => {
      const written = names.flatMap((name) => {
        const value = Object.hasOwn(values, name) ? values[name] : undefined;
        if (value === undefined) return [];
        const text = encode(value, open);
        return named ? name + (text || operator !== ";" ? "=" : "") + text : text;
      });
      return written.length ? first + written.join(next) : "";
    });
    if (named) {
      // Values cannot contain the operator, so the parameters begin after as many operators as the literals contain.
      parameters.unshift({ operator, names, skip: literals.join("").split(operator).length });
      return;
    }
    names.forEach((name, i) => {
      literals[path.length] += i ? next : first;
      const other = open && wide || !literals[path.length] && path.at(-1);
      if (other) throw refuse(`"${other}" and "${name}" cannot be told apart; put text between them, keep one {+…}`);
      if (open) wide = name;
      literals[path.push(name)] = "";
    });
  });
  // This variable takes the rest, after the others have been matched from both ends.
  const middle = wide ? path.indexOf(wide) : path.length - 1;

  function match(uri: string): Record<string, string> | undefined {
    const values: Record<string, string> = Object.create(null);
    const put = (name: string, raw: string, kind: Kind) => {
      try {
        values[name] = decodeURIComponent(raw);
        return !kind[0].test(raw) && !kind[1].test(values[name]);
      } catch {
        return false; // A % without two digits, or bytes that are not UTF-8.
      }
    };
    for (const { operator, names, skip } of parameters) {
      let at = -1;
      for (let n = skip; n && (at = uri.indexOf(operator, at + 1)) >= 0; n--);
      if (at < 0) continue;
      // Splitting stops one past the number of names, because a URI may have millions of parameters. The extra one is
      // unknown or a duplicate.
      for (const pair of uri.slice(at + 1).split(operator === ";" ? ";" : "&", names.length + 1)) {
        const end = pair.includes("=") ? pair.indexOf("=") : pair.length;
        const name = pair.slice(0, end);
        if (!names.includes(name) || name in values) return;
        if (!put(name, pair.slice(end + 1), operator === ";" ? PLAIN : QUERY)) return;
      }
      uri = uri.slice(0, at);
    }
    let start = literals[0].length;
    let end = uri.length - literals[path.length].length;
    if (!uri.startsWith(literals[0]) || !uri.endsWith(literals[path.length])) return;
    if (!path[0]) return start === uri.length ? values : undefined;
    for (let i = 0; i < middle; i++) {
      const at = uri.indexOf(literals[i + 1], start + 1);
      if (at < 0 || !put(path[i], uri.slice(start, at), PLAIN)) return;
      start = at + literals[i + 1].length;
    }
    for (let i = path.length - 1; i > middle; i--) {
      const { length } = literals[i];
      // lastIndexOf() treats a negative position as 0.
      const at = end <= length ? -1 : uri.lastIndexOf(literals[i], end - length - 1);
      if (at < 0 || !put(path[i], uri.slice(at + length, end), PLAIN)) return;
      end = at;
    }
    return start < end && put(path[middle], uri.slice(start, end), wide ? WIDE : PLAIN) ? values : undefined;
  }

  const expand = (values: Values) => writers.map((write) => write(values)).join("");

  function build(values: Values, name: string): string {
    const refuse = (state: string) => new TypeError(`Cannot build a URI of ${JSON.stringify(name)}: ${state}`);
    const given = Object.entries(values).filter(([, value]) => value !== undefined);
    const missing = path.find((name) => !given.some(([key]) => key === name));
    if (missing !== undefined) throw refuse(`${missing} is missing; ${template} needs it`);
    for (const [key, value] of given) {
      if (!variables.includes(key)) throw refuse(`${template} has no variable ${key}; give ${variables.join(", ")}`);
      if (typeof value !== "string") throw refuse(`${key} is of type ${typeof value}; give a string`);
      // encodeURIComponent() throws for such a value.
      if (!value.isWellFormed()) throw refuse(`${key} has half of a surrogate pair; give a well-formed string`);
      if (value === "" && path.includes(key)) throw refuse(`${key} is empty; give at least one character`);
    }
    const uri = expand(values);
    const read = match(uri);
    const wrong = given.find(([key, value]) => read?.[key] !== value);
    if (!wrong) return uri;
    const [key, value] = wrong;
    throw refuse(
      `${key} is ${JSON.stringify(value)}, which would not be read back from ${
        JSON.stringify(uri)
      }; give another value`,
    );
  }

  return { template, variables, match, expand, build };
}

/** Patterns that a kind of variable rejects, in its raw and its decoded text. */
type Kind = readonly [raw: RegExp, decoded: RegExp];
const PLAIN: Kind = [/[?#]/, /^\.\.?$|[/\\\0]/];
const WIDE: Kind = [/(?!)/, /(^|[/\\])\.\.([/\\]|$)|\0/];
const QUERY: Kind = [/#/, /(?!)/];

/** Percent-encodes a value. With `open`, reserved characters and triplets such as `%20` stay as they are. */
function encode(value: string, open: boolean): string {
  return value.replace(open ? /%[\da-f]{2}|[^\w.~:/?#[\]@!$&'()*+,;=-]/giu : /[^\w.~-]/gu, (c) => {
    if (c.length > 2) return c;
    const encoded = encodeURIComponent(c);
    // RFC 6570 also encodes !'()*, which encodeURIComponent() leaves as they are.
    return encoded === c ? "%" + c.charCodeAt(0).toString(16).toUpperCase() : encoded;
  });
}
