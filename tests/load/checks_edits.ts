// The checks that `checks.ts` removes from a copy of the server, to measure what they cost.
//
// The copy keeps what every server has to find out: the path, the media types that the client accepts, and the era. It
// also keeps schemas, because they belong to the tool. It loses the checks and the accounting that can refuse a request.

/** One check, and the code that replaces it. */
export interface Edit {
  readonly path: string;
  readonly what: string;
  /** Occurs exactly once in the file. */
  readonly from: string;
  readonly to: string;
}

const FETCH = "src/transports/http/fetch.ts";
const BODY = "src/transports/http/request_body.ts";
const EXCHANGE = "src/transports/http/exchange.ts";
const JSONRPC = "src/protocol/jsonrpc.ts";
const ENVELOPE = "src/eras/modern/envelope.ts";
const MODERN = "src/eras/modern/modern.ts";
const LEGACY = "src/eras/legacy/legacy.ts";
const SCHEDULER = "src/core/scheduler.ts";

/** All checks that are removed. */
export const EDITS: readonly Edit[] = [
  {
    path: FETCH,
    what: "Origin and Host",
    from:
      '(headers.has("origin") || headers.get("Host") !== this.#lastHost || !isTarget(request.url, this.#lastTarget))',
    to: "!isTarget(request.url, this.#lastTarget)",
  },
  {
    path: FETCH,
    what: "whether the server is closing",
    from: "if (this.#isClosing) return this.#refuse(request, CLOSING);",
    to: "",
  },
  {
    path: FETCH,
    what: "Content-Type and Content-Encoding",
    from: "? checkPost(headers, accepts)",
    to: "? undefined",
  },
  {
    path: BODY,
    what: "the length of the body",
    from: 'const length = request.headers.get("content-length");',
    to: 'const length = "";',
  },
  { path: BODY, what: "the time that the body takes", from: "this.#arriving.add(receiver);", to: "" },
  { path: BODY, what: "the end of that time", from: "this.#arriving.delete(receiver);", to: "" },
  {
    path: FETCH,
    what: "UTF-8",
    from: 'if (text.includes("\\ufffd")) text = strict.decode(body);',
    to: "",
  },
  {
    path: JSONRPC,
    what: "depth and number of values",
    from: "const excess = size ? toExcess(size, limits) : findExcess(text, limits);",
    to: "const excess = undefined;",
  },
  {
    path: JSONRPC,
    what: "the form of the message",
    from: '  if (!isObject(value)) return broken(INVALID_REQUEST, "it is not a JSON object");\n',
    to: `  {
    const { id, method, params } = Object(value);
    return id === undefined
      ? { kind: "notification", method, params }
      : { kind: "request", id, method, params, weight, text };
  }
`,
  },
  {
    path: ENVELOPE,
    what: "the envelope, and the headers that repeat it",
    from: '  if (!isObject(meta)) throw invalid("params._meta is not an object");\n',
    to: `  return {
    version: meta[META_VERSION],
    info: meta[META_CLIENT],
    capabilities: meta[META_CAPABILITIES],
    logLevel: meta[META_LEVEL],
  };
`,
  },
  {
    path: MODERN,
    what: "the size of a result",
    from: "if (text.length * 3 > resultBytes && !isWithin(text, resultBytes)) {",
    to: "if (false) {",
  },
  {
    path: LEGACY,
    what: "the size of a result in a session",
    from: "if (text.length * 3 > resultBytes && !isWithin(text, resultBytes)) {",
    to: "if (false) {",
  },
  {
    path: EXCHANGE,
    what: "whether a result is so large that its client is charged",
    from: "if (body.length <= LARGE) return new Response(body, init);",
    to: "if (true) return new Response(body, init);",
  },
  {
    path: LEGACY,
    what: "the version of a session",
    from: 'if (typeof version === "string" && !isVersion(version)) {',
    to: "if (false) {",
  },
  {
    path: LEGACY,
    what: "the length of a progress token",
    from: 'if (typeof progressToken === "string" && progressToken.length > idCharacters) {',
    to: "if (false) {",
  },
  {
    path: SCHEDULER,
    what: "whether new calls are taken",
    from: 'if (!this.isOpen) return { error: refuse("the server is closing") };',
    to: "",
  },
  {
    path: SCHEDULER,
    what: "slots, the queue and memory",
    from: "return isUncontended ? this.#start(call, runner) : this.#admit(call, runner);",
    to: "return this.#start(call, runner);",
  },
  {
    path: SCHEDULER,
    what: "whether the limits are far away",
    from: `const isUncontended = this.#running < this.#uncontendedCalls &&
      this.#accounts.memory.used + this.#unchargedBytes + call.weight <= this.#uncontendedBytes;`,
    to: "",
  },
];

/** The source of a file without its checks. Throws if a check is not found exactly once. */
export function removeChecks(path: string, source: string): string {
  for (const { what, from, to } of EDITS.filter((edit) => edit.path === path)) {
    const found = source.split(from).length - 1;
    if (found !== 1) {
      throw new Error(
        `Cannot remove the check of ${what}: ${path} has its text ${found} times; update checks_edits.ts`,
      );
    }
    source = source.replace(from, () => to);
  }
  return source;
}
