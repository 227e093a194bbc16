// Serves a document, calls each of its tools once, and compares the tools and the requests with what an independent
// reader finds in the document.
import { assert, assertEquals } from "@std/assert";
import { createServer } from "../../mod.ts";
import { type ApiCredentials, openapi, readOpenApi } from "../../src/ready/openapi/openapi.ts";
import { connectTest } from "../../src/testing/testing.ts";
import { compareRequest, type ExpectedOperation, listExpected, type RawRequest } from "./reader/reader.ts";
import { createSample, NoSample } from "./sample.ts";

/** The figures of one document. */
export interface Figures {
  readonly operations: number;
  readonly tools: number;
  readonly skipped: number;
  /** Number of parts that are not described, because a schema would be too large. */
  readonly cut: number;
  readonly bytes: number;
  /** Number of operations that were called. */
  readonly called: number;
}

/** What was found in one document. */
export interface Tried {
  readonly figures: Figures;
  /** What differs between the two readers. */
  readonly differences: readonly string[];
  /** Operations that were not called, although a sample of arguments was known. */
  readonly uncalled: readonly string[];
  /** The reasons of operations that only the library leaves out. */
  readonly reasons: readonly string[];
}

const base = "https://api.example.com/base";

/** An operation whose differences may have a known reason. */
interface Place {
  readonly path: string;
  /** The names of API keys, which are arguments if no credential sends them. */
  readonly keys: readonly string[];
}

/** The known differences between the two readers, each with its reason. */
const KNOWN: readonly { readonly reason: string; readonly isIt: (difference: string, place: Place) => boolean }[] = [
  {
    reason: "without a credential, the key of a security scheme is a parameter like others",
    isIt: (difference, { keys }) => keys.some((key) => difference.toLowerCase().includes(key.toLowerCase())),
  },
  {
    reason: "a body of a text type is a text, also if its schema says bytes",
    isIt: (difference) => /The text\/\S+ body must be the decoded bytes/.test(difference),
  },
  {
    reason: "a field without a type is a text, unless it is a data URL",
    isIt: (difference) =>
      /part \S+ (must be application\/octet-stream, but it is text\/plain|has no file name)/.test(difference),
  },
  {
    reason: "parameters whose names only differ in other characters have numbers",
    isIt: (difference) =>
      /(has an unknown argument|The argument|has the pair) \S+?_\d+\b|The parameter \S+[<>] must be/.test(difference),
  },
  {
    reason: "names of headers do not depend on the case of letters",
    isIt: (difference) => /has no argument x-/i.test(difference),
  },
  {
    reason: "a path with a query names the parameters that are sent in the query",
    isIt: (_difference, { path }) => /\?.*\{/.test(path),
  },
];

export async function tryDocument(document: Record<string, unknown>): Promise<Tried> {
  let sent: RawRequest | undefined;
  const fetch = async (request: Request) => {
    const { method, headers, url } = request;
    sent = { method, headers, url: new URL(url), body: new Uint8Array(await request.arrayBuffer()) };
    return new Response("ok");
  };
  const { schemes } = readOpenApi(document);
  const make = (auth: ApiCredentials) => openapi(document, { fetch, auth, baseUrl: base, as: () => "tool" });
  const toAuth = (each: ApiCredentials[string]) => Object.fromEntries(schemes.map(({ name }) => [name, each]));
  // Credentials must not hide parameters, because all arguments are compared.
  const api = make(toAuth(false));
  const signedIn = make(toAuth(() => "token"));
  assertEquals(signedIn.operations.map(({ name }) => name), api.operations.map(({ name }) => name), "names are stable");
  const names = api.operations.map(({ name }) => name);
  assertEquals(new Set(names).size, names.length);
  assert(names.every((name) => /^[\w-]{1,64}$/.test(name)));
  const differences: string[] = [];
  const uncalled: string[] = [];
  const reasons: string[] = [];
  let called = 0;
  const toKey = (method: string, path: string) => `${method} ${path.startsWith("/") ? path : `/${path}`}`;
  const keys = schemes.length ? listKeys(document) : [];
  const expected = new Map(listExpected(document).map((each) => [toKey(each.method, each.path), each]));
  for (const key of expected.keys()) {
    if (!api.operations.some(({ method, path }) => toKey(method, path) === key)) differences.push(`${key} is lost`);
  }
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api] }));
  const served = api.operations.filter(({ kind }) => kind === "tool");
  const tools = new Map(served.length ? (await client.listTools()).map((each) => [each.name, each]) : []);
  for (const { name, method, path, kind, reason, bytes, cut } of api.operations) {
    const place = toKey(method, path);
    const report = (states: readonly string[]) => {
      const unknown = states.filter((state) => !KNOWN.some(({ isIt }) => isIt(state, { path, keys })));
      differences.push(...unknown.map((state) => `${place} ${state}`));
    };
    const wanted = expected.get(place);
    if (!wanted) differences.push(`${place} is not in the document`);
    if (kind === "none") {
      assert(reason, place);
      if (!wanted?.missing.length) reasons.push(`${place}: ${reason}`);
      continue;
    }
    if (wanted?.missing.length) report([`is served, but ${wanted.missing[0]}`]);
    const { inputSchema } = tools.get(name) ?? {};
    assert(inputSchema, place);
    assert(JSON.stringify(inputSchema).length <= 32_768 && bytes < 40_000, `${place} has ${bytes} bytes`);
    // A list of thousands of parameters is cut.
    const isCut = cut > 0 && inputSchema.properties === undefined;
    if (!isCut) report(compareArguments(inputSchema, wanted));
    let args: Record<string, unknown>;
    try {
      args = createSample(inputSchema);
    } catch (error) {
      if (!(error instanceof NoSample)) throw error;
      continue;
    }
    sent = undefined;
    const { isError, content } = await client.callTool(name, args);
    // Some samples do not match, because a schema has several rules for one value.
    if (isError && !sent) {
      uncalled.push(`${place}: ${JSON.stringify(content).slice(0, 300)}`);
      continue;
    }
    called++;
    const request: RawRequest = sent!; // Set by `fetch`.
    const given = wanted?.path ?? path;
    const different = await compareRequest(request, { document, method, path: given, basePath: "/base", args });
    report(different.map((state) => `differs: ${state}`));
  }
  const figures = {
    operations: api.operations.length,
    tools: served.length,
    skipped: signedIn.operations.filter(({ kind }) => kind === "none").length,
    cut: served.reduce((sum, { cut }) => sum + cut, 0),
    bytes: served.reduce((sum, { bytes }) => sum + bytes, 0),
    called,
  };
  return { figures, differences, uncalled, reasons };
}

/** Lists the names of the headers, parameters and cookies with API keys. */
function listKeys({ components, securityDefinitions }: Readonly<Record<string, unknown>>): readonly string[] {
  const all = Object.values({ ...Object(Object(components).securitySchemes), ...Object(securityDefinitions) });
  return all.flatMap((scheme) => Object(scheme).type === "apiKey" ? String(Object(scheme).name) : []);
}

/** Compares the arguments of a tool with the parameters and the body in the document. */
function compareArguments(
  { properties, required = [] }: Readonly<Record<string, unknown>>,
  wanted: ExpectedOperation | undefined,
): readonly string[] {
  if (!wanted) return [];
  const { parameters } = wanted;
  // A body without media types cannot be sent.
  const body = wanted.body?.mediaTypes.length ? wanted.body : undefined;
  const names = Object.keys(Object(properties));
  const known = [...parameters.map(({ argument }) => argument), ...body ? ["body"] : []];
  const needed = [
    ...parameters.filter(({ isRequired }) => isRequired).map(({ argument }) => argument),
    ...body?.isRequired ? ["body"] : [],
  ];
  return [
    ...known.filter((name) => !names.includes(name)).map((name) => `has no argument ${name}`),
    ...names.filter((name) => !known.includes(name)).map((name) => `has an unknown argument ${name}`),
    ...needed.filter((name) => ![required].flat().includes(name)).map((name) => `does not require ${name}`),
  ];
}
