/**
 * URI templates (RFC 6570, levels 1 to 3): expands templates to URIs, and matches URIs against templates.
 *
 * RFC 6570 defines only expansion. A template is rejected if a URI could match the template in more than one way.
 *
 * @see specification/2026-07-28/server/resources (Resource Templates)
 */

export interface UriTemplate {
  readonly template: string;
  /** Names of the variables, in the order of the template. */
  readonly variables: readonly string[];
  /**
   * Matches a URI, and returns its variables, percent-decoded, in an object without a prototype. Returns `undefined` if
   * the URI does not match. Takes time linear in the length of the URI.
   *
   * - Query and `;` parameters may come in any order, and may be absent. A URI with unknown parameters does not match.
   * - A variable ends at the first occurrence of the literal text that follows the variable. A variable after a
   *   `{+name}` starts after the last occurrence of the literal text that precedes the variable.
   * - A variable of the path is never empty. Only a `{+name}` can contain a raw `?` or `#`.
   * - Outside of the query, no value can leave its folder, even if encoded. NUL and `..` segments never match. A plain
   *   value also has no slash, no backslash, and is not `.`.
   */
  match(uri: string): Record<string, string> | undefined;
  /** Expands the template as RFC 6570 defines. Omits variables without a value. */
  expand(values: Readonly<Record<string, string | undefined>>): string;
  /**
   * Builds the URI from which {@linkcode match} reads these values. `name` is the name of the resource, for error
   * messages.
   *
   * @throws {TypeError} if a variable of the path is missing or a variable is unknown, or if a value is not a string or
   * would not be read back unchanged.
   */
  build(values: Readonly<Record<string, string | undefined>>, name: string): string;
}

/** Type of the names in a comma-separated list: `NameList<"a,b">` is `"a" | "b"`. */
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

// Maximum number of variables per template. Limits the number of searches when a URI is matched.
const MAX_VARIABLES = 50;

/** The query or `;` parameters of one expression at the end of a template. */
interface Parameters {
  readonly operator: string;
  readonly names: readonly string[];
  /**
   * Position of the operator, as its number of occurrences up to the parameters. The literal text of the template may
   * contain the operator too, but values cannot.
   */
  readonly skip: number;
}

/** A template that is being parsed, or that has been parsed. */
interface Parts {
  readonly template: string;
  /** Functions that write the pieces of a URI, in order. */
  readonly writers: ((values: Values) => string)[];
  readonly variables: string[];
  /** The parameters, in reverse order of the template. */
  readonly parameters: Parameters[];
  /**
   * The texts around the variables of the path. A path is literals[0] path[0] literals[1] path[1] …, and ends with a
   * literal.
   */
  readonly literals: string[];
  /** Names of the variables of the path. */
  readonly path: string[];
  /** Name of the variable whose value may contain slashes. */
  wide?: string;
}

/**
 * Parses a template. It may contain `{a}`, `{+a}`, `{#a}`, `{.a}`, `{/a}` and lists such as `{a,b}`, and may end with
 * `{;a,b}`, followed by `{?a,b}` or `{&a}`.
 *
 * @throws {TypeError} for `{a*}` and `{a:3}`, unbalanced braces, duplicate names, ambiguous expressions (such as a
 * second `{+a}` or `{#a}`), and more than 50 variables.
 */
export function parseTemplate(template: string): UriTemplate {
  const parts: Parts = { template, writers: [], variables: [], parameters: [], literals: [""], path: [] };
  template.split(/\{([^{}]*)\}/).forEach((piece, index) => {
    if (index % 2) addExpression(parts, piece);
    else if (piece) addText(parts, piece);
  });
  return {
    template,
    variables: parts.variables,
    match: (uri) => match(parts, uri),
    expand: (values) => expand(parts, values),
    build: (values, name) => build(parts, values, name),
  };
}

/** Tests whether a URI matches a template of another server. A template with syntax that is not supported matches none. */
export function matchesTemplate(template: string, uri: string): boolean {
  try {
    return parseTemplate(template).match(uri) !== undefined;
  } catch {
    return false;
  }
}

function refuse({ template }: Parts, state: string): TypeError {
  return new TypeError(`Cannot parse URI template ${JSON.stringify(template)}: ${state}`);
}

function refuseLate(parts: Parts, piece: string): TypeError {
  return refuse(parts, `"${piece}" follows the parameters; end with one {;…}, then one {?…} or {&…}`);
}

function addText(parts: Parts, text: string): void {
  if (parts.parameters.length) throw refuseLate(parts, text);
  if (/[{}]/.test(text)) throw refuse(parts, "a brace is unbalanced; write variables as {name}");
  parts.literals[parts.path.length] += text;
  parts.writers.push(() => text);
}

function addExpression(parts: Parts, expression: string): void {
  const operator = /^[+#./;?&]/.exec(expression)?.[0] ?? "";
  const names = expression.slice(operator.length).split(",");
  const [last] = parts.parameters;
  if (last && (last.operator !== ";" || !/^[?&]$/.test(operator))) throw refuseLate(parts, expression);
  addVariables(parts, names, expression);
  parts.writers.push(toWriter(names, operator));
  if (!/[;?&]/.test(operator)) return addToPath(parts, names, operator);
  const skip = parts.literals.join("").split(operator).length;
  parts.parameters.unshift({ operator, names, skip });
}

function addVariables(parts: Parts, names: readonly string[], expression: string): void {
  const { variables } = parts;
  for (const name of names) {
    if (/[*:]/.test(name)) throw refuse(parts, `{${expression}} cannot be matched; leave out * and :length`);
    if (!/^\w+(\.\w+)*$/.test(name)) {
      throw refuse(parts, `{${expression}} has an invalid name; use letters, digits and _`);
    }
    if (variables.includes(name)) throw refuse(parts, `"${name}" is used twice; use each name once`);
    if (variables.push(name) > MAX_VARIABLES) {
      throw refuse(parts, `it has more than ${MAX_VARIABLES} variables; use fewer variables`);
    }
  }
}

function addToPath(parts: Parts, names: readonly string[], operator: string): void {
  const { literals, path } = parts;
  const isOpen = /[+#]/.test(operator);
  const { first, next } = toSeparators(operator);
  names.forEach((name, i) => {
    literals[path.length] += i ? next : first;
    const other = isOpen && parts.wide || !literals[path.length] && path.at(-1);
    if (other) {
      throw refuse(
        parts,
        `"${other}" and "${name}" cannot be distinguished; put text between the variables, and use at most one {+…}`,
      );
    }
    if (isOpen) parts.wide = name;
    literals[path.push(name)] = "";
  });
}

/** Returns the text before the first value of an expression, and the text before each further value. */
function toSeparators(operator: string): { readonly first: string; readonly next: string } {
  const first = operator === "+" ? "" : operator;
  return { first, next: operator === "?" ? "&" : !operator || /[+#]/.test(operator) ? "," : operator };
}

function toWriter(names: readonly string[], operator: string): (values: Values) => string {
  const isOpen = /[+#]/.test(operator);
  const isNamed = /[;?&]/.test(operator);
  const { first, next } = toSeparators(operator);
  return (values) => {
    const written = names.flatMap((name) => {
      const value = Object.hasOwn(values, name) ? values[name] : undefined;
      if (value === undefined) return [];
      const text = encode(value, isOpen);
      return isNamed ? name + (text || operator !== ";" ? "=" : "") + text : text;
    });
    return written.length ? first + written.join(next) : "";
  };
}

function match(parts: Parts, uri: string): Record<string, string> | undefined {
  const values: Record<string, string> = Object.create(null);
  const start = matchParameters(parts, uri, values);
  return start !== undefined && matchPath(parts, start, values) ? values : undefined;
}

/**
 * Reads the parameters into `values`. Returns the URI without its parameters, or `undefined` if the URI does not match.
 */
function matchParameters(
  { parameters }: Parts,
  uri: string,
  values: Record<string, string>,
): string | undefined {
  let rest = uri;
  for (const { operator, names, skip } of parameters) {
    let at = -1;
    for (let n = skip; n && (at = rest.indexOf(operator, at + 1)) >= 0; n--);
    if (at < 0) continue;
    // Split into at most one more part than there are names, because a URI may have millions of parameters. The extra
    // part is an unknown or duplicate parameter, so the URI does not match.
    for (const pair of rest.slice(at + 1).split(operator === ";" ? ";" : "&", names.length + 1)) {
      const end = pair.includes("=") ? pair.indexOf("=") : pair.length;
      const name = pair.slice(0, end);
      if (!names.includes(name) || name in values) return;
      if (!read(values, name, pair.slice(end + 1), operator === ";" ? PLAIN : QUERY)) return;
    }
    rest = rest.slice(0, at);
  }
  return rest;
}

/**
 * Reads the variables of the path into `values`. Matches variables from both ends. The remaining text is the value of
 * the variable in the middle: the variable that may contain slashes, or the last variable if there is no such variable.
 */
function matchPath({ literals, path, wide }: Parts, uri: string, values: Record<string, string>): boolean {
  const middle = wide ? path.indexOf(wide) : path.length - 1;
  let start = literals[0].length;
  let end = uri.length - literals[path.length].length;
  if (!uri.startsWith(literals[0]) || !uri.endsWith(literals[path.length])) return false;
  if (!path[0]) return start === uri.length;
  for (let i = 0; i < middle; i++) {
    const at = uri.indexOf(literals[i + 1], start + 1);
    if (at < 0 || !read(values, path[i], uri.slice(start, at), PLAIN)) return false;
    start = at + literals[i + 1].length;
  }
  for (let i = path.length - 1; i > middle; i--) {
    const { length } = literals[i];
    // Without the check of `end`, lastIndexOf() could find a match at the beginning, because it treats a negative
    // position as 0.
    const at = end <= length ? -1 : uri.lastIndexOf(literals[i], end - length - 1);
    if (at < 0 || !read(values, path[i], uri.slice(at + length, end), PLAIN)) return false;
    end = at;
  }
  return start < end && read(values, path[middle], uri.slice(start, end), wide ? WIDE : PLAIN);
}

/** Decodes a value and adds it to `values`. Returns `false` if `kind` does not allow the value. */
function read(values: Record<string, string>, name: string, raw: string, kind: Kind): boolean {
  try {
    values[name] = decodeURIComponent(raw);
    return !kind[0].test(raw) && !kind[1].test(values[name]);
  } catch {
    return false; // A % without two hex digits, or invalid UTF-8.
  }
}

function expand({ writers }: Parts, values: Values): string {
  return writers.map((write) => write(values)).join("");
}

function build(parts: Parts, values: Values, resource: string): string {
  const { template, variables, path } = parts;
  const refuse = (state: string) => new TypeError(`Cannot build a URI of ${JSON.stringify(resource)}: ${state}`);
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  const missing = path.find((name) => !given.some(([key]) => key === name));
  if (missing !== undefined) {
    throw refuse(`${missing} is missing; pass a value for each variable in the path of ${template}`);
  }
  for (const [key, value] of given) {
    if (!variables.includes(key)) throw refuse(`${template} has no variable ${key}; use ${variables.join(", ")}`);
    if (typeof value !== "string") throw refuse(`${key} is of type ${typeof value}; pass a string`);
    // encodeURIComponent() throws for such a value.
    if (!value.isWellFormed()) throw refuse(`${key} contains a lone surrogate; pass a well-formed string`);
    if (value === "" && path.includes(key)) throw refuse(`${key} is empty; pass at least one character`);
  }
  const uri = expand(parts, values);
  const found = match(parts, uri);
  const wrong = given.find(([key, value]) => found?.[key] !== value);
  if (!wrong) return uri;
  const [key, value] = wrong;
  const state = `${key} is ${JSON.stringify(value)}, which cannot be read back from ${JSON.stringify(uri)}`;
  throw refuse(`${state}; pass another value`);
}

/** Patterns that the value of a variable must not match, for its raw text and for its decoded text. */
type Kind = readonly [raw: RegExp, decoded: RegExp];
const PLAIN: Kind = [/[?#]/, /^\.\.?$|[/\\\0]/];
const WIDE: Kind = [/(?!)/, /(^|[/\\])\.\.([/\\]|$)|\0/];
const QUERY: Kind = [/#/, /(?!)/];

/**
 * Percent-encodes a value. If `open` is `true`, reserved characters and encoded triplets such as `%20` are not changed.
 * Calls no function for each character, because a client can send values of several megabytes.
 */
function encode(value: string, open: boolean): string {
  if (open) return encodeURI(value).replaceAll("%5B", "[").replaceAll("%5D", "]").replace(/%25([\da-f]{2})/gi, "%$1");
  let text = encodeURIComponent(value);
  // RFC 6570 also encodes !'()*, which encodeURIComponent() does not encode.
  for (const [char, encoded] of RESERVED) text = text.replaceAll(char, encoded);
  return text;
}

const RESERVED = [["!", "%21"], ["'", "%27"], ["(", "%28"], [")", "%29"], ["*", "%2A"]] as const;
