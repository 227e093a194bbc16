/**
 * URI templates (RFC 6570, levels 1 to 3) that can be matched as well as expanded.
 *
 * `specification/2026-07-28/server/resources` names resources by such templates. RFC 6570 defines expansion only, so a
 * template is refused where a URI could not be read back in one way.
 *
 * @module
 */

/** A parsed template. Made by {@linkcode parseTemplate}. */
export interface UriTemplate {
  /** The text it was made from. */
  readonly template: string;
  /** Names of the variables, in the order of the template. */
  readonly variables: readonly string[];
  /**
   * Reads the variables out of a URI, percent-decoded, into an object without a prototype; `undefined` if the URI does
   * not fit. Query and `;` parameters may come in any order and may be absent; unknown ones do not fit.
   *
   * A variable ends where the literal text after it first occurs (last occurs, for the variables after a `{+name}`), is
   * never empty, and holds no raw `?` or `#` (that of a `{+name}` may). Outside of the query no value leads out of its
   * folder: NUL, a `..` segment, and in a plain value any slash, backslash or lone `.` do not fit, however encoded.
   * Time grows linearly with the length of the URI.
   */
  match(uri: string): Record<string, string> | undefined;
  /** Writes the URI for these values as RFC 6570 says; a variable without a value is left out. */
  expand(values: Readonly<Record<string, string | undefined>>): string;
  /**
   * Writes the URI for these values, from which {@linkcode match} reads the same values.
   *
   * @throws {TypeError} if a variable of the path is missing, one is unknown, or a value is no string or would not be
   * read back as it is. `name` names the resource in the message.
   */
  build(values: Readonly<Record<string, string | undefined>>, name: string): string;
}

/** The names in a list: `NameList<"a,b">` is `"a" | "b"`. */
export type NameList<L extends string> = L extends `${infer Name},${infer Rest}` ? Name | NameList<Rest> : L;

/**
 * The variables of a literal template as an object type: `TemplateVariables<"repo://{owner}/{name}{?ref}">` is
 * `{ owner: string } & { name: string } & { ref?: string }`. For a template that is not a literal: any names.
 */
export type TemplateVariables<T extends string> = string extends T ? { readonly [name: string]: string }
  : T extends `${string}{${infer E}}${infer Rest}` ?
      & (E extends `${"?" | "&" | ";"}${infer L}` ? { readonly [N in NameList<L>]?: string }
        : E extends `${"+" | "#" | "." | "/"}${infer L}` ? { readonly [N in NameList<L>]: string }
        : { readonly [N in NameList<E>]: string })
      & TemplateVariables<Rest>
  : Record<never, string>;

type Values = Readonly<Record<string, string | undefined>>;

// Bounds the searches that one URI can cause; no template that people read comes near.
const MAX_VARIABLES = 50;

/**
 * Parses a template: `{a}`, `{+a}`, `{#a}`, `{.a}`, `{/a}`, lists such as `{a,b}`, and at the end `{;a,b}`, then
 * `{?a,b}` or `{&a}`.
 *
 * @throws {TypeError} for `{a*}` and `{a:3}`, unbalanced braces, a name used twice, expressions that could not be told
 * apart in a URI (a second `{+a}` or `{#a}` among them), and more than 50 variables.
 */
export function parseTemplate(template: string): UriTemplate {
  const refuse = (state: string) => new TypeError(`Cannot parse URI template ${JSON.stringify(template)}: ${state}`);
  const writers: ((values: Values) => string)[] = [];
  const variables: string[] = [];
  const parameters: { readonly operator: string; readonly names: readonly string[]; readonly skip: number }[] = [];
  // The path reads literals[0] path[0] literals[1] path[1] … and ends with a literal.
  const literals = [""];
  const path: string[] = [];
  let wide: string | undefined;

  template.split(/\{([^{}]*)\}/).forEach((piece, index) => {
    const operator = index % 2 ? /^[+#./;?&]/.exec(piece)?.[0] ?? "" : piece;
    if (parameters[0] && piece && (parameters[0].operator !== ";" || !/^[?&]$/.test(operator))) {
      throw refuse(`"${piece}" follows the parameters; end with one {;…}, then one {?…} or {&…}`);
    }
    if (index % 2 === 0) {
      if (/[{}]/.test(piece)) throw refuse("a brace stands alone; write variables as {name}");
      literals[path.length] += piece;
      writers.push(() => piece);
      return;
    }
    const names = piece.slice(operator.length).split(",");
    for (const name of names) {
      if (/[*:]/.test(name)) throw refuse(`{${piece}} cannot be matched; leave out * and :length`);
      if (!/^\w+(\.\w+)*$/.test(name)) throw refuse(`{${piece}} lacks a name; use letters, digits and _`);
      if (variables.includes(name)) throw refuse(`"${name}" stands in it twice; rename one`);
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
      // Values cannot hold the operator, so the parameters begin behind as many of it as the literals hold.
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
  // This variable takes what is left when the others have been cut off from both ends.
  const middle = wide ? path.indexOf(wide) : path.length - 1;

  function match(uri: string): Record<string, string> | undefined {
    const values: Record<string, string> = Object.create(null);
    const put = (name: string, raw: string, kind: Kind) => {
      try {
        values[name] = decodeURIComponent(raw);
        return !kind[0].test(raw) && !kind[1].test(values[name]);
      } catch {
        return false; // a % without two digits, or bytes that are not UTF-8
      }
    };
    for (const { operator, names, skip } of parameters) {
      let at = -1;
      for (let n = skip; n && (at = uri.indexOf(operator, at + 1)) >= 0; n--);
      if (at < 0) continue;
      // One more than there are names holds a name that is unknown or there already: a URI may have millions.
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
      // lastIndexOf() takes a negative position for 0.
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
      // Encoding would throw.
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

/** What a kind of variable refuses: in the raw text, and in the decoded one. */
type Kind = readonly [raw: RegExp, decoded: RegExp];
const PLAIN: Kind = [/[?#]/, /^\.\.?$|[/\\\0]/];
const WIDE: Kind = [/(?!)/, /(^|[/\\])\.\.([/\\]|$)|\0/];
const QUERY: Kind = [/#/, /(?!)/];

/** Percent-encodes; `open` leaves reserved characters and triplets such as `%20` as they are. */
function encode(value: string, open: boolean): string {
  return value.replace(open ? /%[\da-f]{2}|[^\w.~:/?#[\]@!$&'()*+,;=-]/giu : /[^\w.~-]/gu, (c) => {
    if (c.length > 2) return c;
    const encoded = encodeURIComponent(c);
    // RFC 6570 encodes the five characters !'()* that encodeURIComponent() leaves.
    return encoded === c ? "%" + c.charCodeAt(0).toString(16).toUpperCase() : encoded;
  });
}
