// Reads raw requests, and compares them with what the document and the arguments say. It shares no code with the
// library: it reads the document of each version as it is.

type Node = Readonly<Record<string, unknown>>;

const toNode = (value: unknown): Node =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Node : {};
const toList = (value: unknown): readonly unknown[] => Array.isArray(value) ? value : [];
const toText = (value: unknown) =>
  value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
const same = (a: unknown, b: unknown) => JSON.stringify(sort(a)) === JSON.stringify(sort(b));

function sort(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sort);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([key, each]) => [key, sort(each)]),
  );
}

/** A request with its body. */
export interface RawRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

export interface ReadOperation {
  readonly document: Node;
  readonly method: string;
  readonly path: string;
  /** Path of the base URL. */
  readonly basePath: string;
  readonly args: Node;
}

/** A parameter, in terms that all versions share. */
interface Wanted {
  readonly name: string;
  readonly place: string;
  readonly value: unknown;
  /** How the parts of a list or object are joined: `each` writes every part with a name. */
  readonly join: "each" | "deep" | "json" | "," | " " | "|" | "\t";
  readonly style: string;
}

/** Returns the differences between a request and its operation. */
export async function compareRequest(request: RawRequest, operation: ReadOperation): Promise<readonly string[]> {
  const { document, method, path, basePath, args } = operation;
  const item = follow(document, toNode(document.paths)[path]);
  const node = toNode(item[method.toLowerCase()] ?? toNode(item.additionalOperations)[method]);
  const all = new Map<string, Node>();
  for (const each of [...toList(item.parameters), ...toList(node.parameters)]) {
    const parameter = follow(document, each);
    all.set(`${parameter.in} ${parameter.name}`, parameter);
  }
  const wanted = [...all.values()].flatMap((each) => toWanted(document, each, args, [...all.values()]));
  const problems: string[] = [];
  const check = (isRight: boolean, state: string) => void (isRight || problems.push(state));
  check(request.method === method, `method ${request.method}`);
  comparePath(request.url, { path, basePath, wanted, check });
  compareQuery(request.url, { path, wanted, check });
  for (const { name, place, value, join } of wanted) {
    if (place !== "header") continue;
    const sent = request.headers.get(name);
    const pair = (each: [string, unknown]) => `${each[0]}${join === "each" ? "=" : ","}${toText(each[1])}`;
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value) && join !== "json";
    const expected = Array.isArray(value)
      ? value.map(toText).join(",")
      : isMap
      ? Object.entries(value).map(pair).join(",")
      : toText(value);
    check(sent !== null && sent.trim() === expected.trim(), `header ${name}: ${sent}`);
  }
  const known = [...wanted.map(({ name }) => name.toLowerCase()), "accept", "content-type", "cookie", "authorization"];
  const extra = [...request.headers.keys()].filter((name) => !known.includes(name) && !/^x-test-/.test(name));
  check(!extra.length, `headers ${extra}`);
  const cookies = new Map(
    (request.headers.get("cookie") ?? "").split("; ").filter(Boolean).map((each) =>
      each.split("=", 2) as [string, string]
    ),
  );
  for (const { name, place, value } of wanted) {
    if (place === "cookie" && typeof value !== "object") {
      check(decodeURIComponent(cookies.get(name) ?? "\0") === toText(value), `cookie ${name}`);
    }
  }
  await compareBody(request, { document, node, parameters: [...all.values()], body: args.body, check });
  return problems;
}

function follow(document: Node, value: unknown): Node {
  let found = toNode(value);
  for (let i = 0; typeof found.$ref === "string" && i < 20; i++) {
    const keys = found.$ref.slice(2).split("/").map((key) =>
      decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")
    );
    found = toNode(keys.reduce<unknown>((at, key) => toNode(at)[key], document));
  }
  return found;
}

const SEPARATORS: Readonly<Record<string, Wanted["join"]>> = {
  ...{ csv: ",", ssv: " ", pipes: "|", tsv: "\t", multi: "each" },
  ...{ form: ",", spaceDelimited: " ", pipeDelimited: "|", simple: ",", deepObject: "deep" },
};

function toWanted(document: Node, parameter: Node, args: Node, all: readonly Node[]): readonly Wanted[] {
  const { name, in: place } = parameter;
  if (typeof name !== "string" || !["path", "query", "header", "cookie"].includes(String(place))) return [];
  const argument = toArgument(name, String(place), all);
  const value = args[argument];
  if (value === undefined || value === null) return [];
  if (typeof value === "object" && !Object.keys(value).length && !parameter.content) return [];
  const isOld = document.swagger !== undefined;
  const style = String(parameter.style ?? (place === "query" || place === "cookie" ? "form" : "simple"));
  const explode = parameter.explode ?? (style === "form" || style === "deepObject");
  const format = String(parameter.collectionFormat ?? "csv");
  const join = parameter.content
    ? "json"
    : isOld
    ? SEPARATORS[format]
    : style === "deepObject"
    ? "deep"
    : explode
    ? "each"
    : SEPARATORS[style];
  return [{ name, place: String(place), value, join, style }];
}

/** Finds the name of the argument by the rule of the documentation. */
function toArgument(name: string, place: string, all: readonly Node[]): string {
  const clean = (text: string) =>
    text.replace(/\]$/, "").replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^_+|_+$/g, "").slice(0, 64);
  const isDouble =
    all.filter((each) => each.in !== "body" && each.in !== "formData" && clean(String(each.name)) === clean(name))
      .length > 1;
  return isDouble ? `${clean(name)}_${place}` : clean(name);
}

type Check = (isRight: boolean, state: string) => void;

function comparePath(url: URL, { path, basePath, wanted, check }: {
  path: string;
  basePath: string;
  wanted: readonly Wanted[];
  check: Check;
}): void {
  const [plain] = path.split(/[?#]/);
  const names: string[] = [];
  const pattern = plain.split(/(\{[^{}/]+\})/).map((piece) => {
    if (!/^\{.+\}$/.test(piece)) return encodeURI(decodeURI(piece)).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    names.push(piece.slice(1, -1));
    return "([^/]+)";
  }).join("");
  const found = new RegExp(`^${basePath}${pattern.startsWith("/") ? "" : "/"}${pattern}$`).exec(url.pathname);
  if (!found) return check(false, `path ${url.pathname}`);
  names.forEach((name, i) => {
    const parameter = wanted.find((each) => each.place === "path" && each.name === name);
    if (!parameter) return;
    const { value, join, style } = parameter;
    const text = found[i + 1];
    if (style !== "simple") return check(text.length > 1, `path ${name}: ${text}`);
    const parts = text.split(",").map(decodeURIComponent);
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
    const expected = Array.isArray(value)
      ? value.map(toText)
      : isMap
      ? Object.entries(value).flatMap(([key, each]) =>
        join === "each" ? [`${key}=${toText(each)}`] : [key, toText(each)]
      )
      : [toText(value)];
    check(same(parts, expected), `path ${name}: ${text}`);
  });
}

function compareQuery(url: URL, { path, wanted, check }: {
  path: string;
  wanted: readonly Wanted[];
  check: Check;
}): void {
  const fixed = path.split("#")[0].split("?")[1] ?? "";
  comparePairs(
    url.search.slice(1),
    wanted.filter(({ place }) => place === "query"),
    check,
    fixed.split("&").filter(Boolean).length,
  );
}

/** Compares pairs such as `a=1&b=2` with values. `extra` is the number of pairs that no value explains. */
function comparePairs(text: string, wanted: readonly Omit<Wanted, "place">[], check: Check, extra = 0): void {
  const pairs = text.split("&").filter(Boolean).map((pair) => pair.split("=", 2) as [string, string?]);
  const left = new Set(pairs);
  const take = (name: string) => {
    const found = pairs.filter(([key]) => decodeForm(key) === name);
    found.forEach((pair) => left.delete(pair));
    return found.map(([, value = ""]) => value);
  };
  for (const { name, value, join } of wanted) {
    const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
    if (join === "json") check(same(JSON.parse(decodeForm(take(name)[0] ?? "null")), value), `${name} as JSON`);
    else if (Array.isArray(value) && join === "each" || Array.isArray(value) && join === "deep") {
      check(same(take(name).map(decodeForm), value.map(toText)), `${name} as pairs`);
    } else if (isMap && join === "each") {
      for (const [key, each] of Object.entries(value)) {
        check(take(key).map(decodeForm).includes(toText(each)), `${name}.${key}`);
      }
    } else if (isMap && join === "deep") compareDeep(name, value as Node, take, check);
    else if (Array.isArray(value) || isMap) {
      const [sent = ""] = take(name);
      const expected = (Array.isArray(value) ? value : Object.entries(value as Node).flat()).map(toText);
      check(decodeForm(sent) === expected.join(join), `${name} joined: ${sent}`);
    } else check(same(take(name).map(decodeForm), [toText(value)]), `${name}: ${text}`);
  }
  check(left.size <= extra, `pairs ${[...left].map((pair) => pair[0])}`);
}

function compareDeep(name: string, value: Node, take: (name: string) => readonly string[], check: Check): void {
  for (const [key, each] of Object.entries(value)) {
    const inner = `${name}[${key}]`;
    if (typeof each === "object" && each !== null && !Array.isArray(each)) {
      compareDeep(inner, toNode(each), take, check);
    } else check(same(take(inner).map(decodeForm), [each].flat().map(toText)), inner);
  }
}

const decodeForm = (text: string) => decodeURIComponent(text.replaceAll("+", " "));

async function compareBody({ headers, body, method }: RawRequest, { document, node, parameters, body: value, check }: {
  document: Node;
  node: Node;
  parameters: readonly Node[];
  body: unknown;
  check: Check;
}): Promise<void> {
  const type = headers.get("content-type") ?? "";
  if (value === undefined || method === "GET" || method === "HEAD") {
    return check(!body.length, `a body of ${body.length} bytes`);
  }
  const text = new TextDecoder().decode(body);
  const [plain] = type.split(";");
  const documented = document.swagger === undefined
    ? Object.keys(toNode(follow(document, node.requestBody).content))
    : [...toList(node.consumes ?? document.consumes), "application/json", "multipart/form-data"].map(String);
  const isKnown = documented.some((each) => each.split(";")[0].toLowerCase() === plain || each.includes("*"));
  check(isKnown, `content type ${type}, not ${documented}`);
  if (/json/.test(plain)) return check(same(JSON.parse(text), value), "JSON body");
  if (plain === "application/x-www-form-urlencoded") {
    const media = toNode(toNode(follow(document, node.requestBody).content)[plain]);
    const wanted = Object.entries(toNode(value)).filter(([, each]) =>
      each !== null && !(Array.isArray(each) && !each.length)
    ).map(([name, each]) => {
      const encoding = toNode(toNode(media.encoding)[name]);
      const old = parameters.find((parameter) => parameter.in === "formData" && parameter.name === name);
      const style = encoding.style ?? (encoding.explode === undefined ? undefined : "form");
      const explode = encoding.explode ?? (style === undefined || style === "form");
      const isMap = typeof each === "object" && !Array.isArray(each);
      const join = old?.type === "array"
        ? SEPARATORS[String(old.collectionFormat ?? "multi")]
        : style === "deepObject"
        ? "deep"
        : isMap && style === undefined
        ? "json"
        : explode
        ? "each"
        : SEPARATORS[String(style)];
      return { name, value: each, join, style: "form" } as const;
    });
    return comparePairs(text, wanted, check);
  }
  if (plain === "multipart/form-data") {
    const form = await new Response(body, { headers: { "content-type": type } }).formData();
    for (const [name, each] of Object.entries(toNode(value))) {
      if (each === null) continue;
      const sent = await Promise.all(
        form.getAll(name).map(async (part) => part instanceof File ? btoa(await part.text()) : part),
      );
      check(same(sent, [each].flat().map(toText)), `part ${name}: ${sent}`);
    }
    return check([...form.keys()].every((name) => Object.hasOwn(toNode(value), name)), "parts");
  }
  const isBytes = btoa(text) === value;
  check(isBytes || text === value, `body of ${type}`);
}
