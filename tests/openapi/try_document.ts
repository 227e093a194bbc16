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
  const expected = new Map(listExpected(document).map((each) => [toKey(each.method, each.path), each]));
  for (const key of expected.keys()) {
    if (!api.operations.some(({ method, path }) => toKey(method, path) === key)) differences.push(`${key} is lost`);
  }
  await using client = await connectTest(createServer({ name: "api", version: "1.0.0", handlers: [api] }));
  const served = api.operations.filter(({ kind }) => kind === "tool");
  const tools = new Map(served.length ? (await client.listTools()).map((each) => [each.name, each]) : []);
  for (const { name, method, path, kind, reason, bytes } of api.operations) {
    const place = toKey(method, path);
    const wanted = expected.get(place);
    if (!wanted) differences.push(`${place} is not in the document`);
    if (kind === "none") {
      assert(reason, place);
      if (!wanted?.missing.length) reasons.push(`${place}: ${reason}`);
      continue;
    }
    if (wanted?.missing.length) differences.push(`${place} is served, but ${wanted.missing[0]}`);
    const { inputSchema } = tools.get(name) ?? {};
    assert(inputSchema, place);
    assert(JSON.stringify(inputSchema).length <= 32_768 && bytes < 40_000, `${place} has ${bytes} bytes`);
    differences.push(...compareArguments(inputSchema, wanted).map((state) => `${place} ${state}`));
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
    differences.push(...different.map((state) => `${place} differs: ${state}`));
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

/** Compares the arguments of a tool with the parameters and the body in the document. */
function compareArguments(
  { properties, required = [] }: Readonly<Record<string, unknown>>,
  wanted: ExpectedOperation | undefined,
): readonly string[] {
  if (!wanted) return [];
  const { parameters, body } = wanted;
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
