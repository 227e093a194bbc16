/**
 * Turns an operation into a tool, a resource or a resource template.
 */
import {
  type Context,
  type Handler,
  type JsonSchema,
  resource,
  type ResourceTemplate,
  tool,
  type ToolResult,
} from "../../library.ts";
import { LISTED } from "../../core/internals.ts";
import { isToken } from "../../core/kit/http_token.ts";
import { shorten } from "../../core/kit/shorten.ts";
import { SAFE, toHttpHints } from "../http_hints.ts";
import { POSITIVE, sendGuarded } from "../http_request.ts";
import { toTitle } from "../title.ts";
import { type Answer, type CheckJson, toContents, toResult } from "./answer.ts";
import {
  type NamedParameter,
  type OperationArguments,
  type PlacedName,
  toOperationArguments,
  writeArguments,
  type WrittenRequest,
} from "./arguments.ts";
import { readBody } from "./body.ts";
import { addCredentials, readSecurity, type Security } from "./credentials.ts";
import { type ApiDocument, PartError, resolveLoosely } from "./document.ts";
import { nameArguments } from "./names.ts";
import { nestArguments, type NestedMembers, placeNested } from "./nested_arguments.ts";
import type { DocumentOperation } from "./operations.ts";
import type { ApiOperation } from "./api_operation.ts";
import type { OpenApiOptions, OperationKind } from "./options.ts";
import { type Parameter, readParameters } from "./parameters.ts";
import { parsePath, type PathTemplate, toUrl } from "./path_template.ts";
import { setPrincipal } from "./principals.ts";
import { createCheck, readAccept, readResultSchema } from "./results.ts";
import type { Schemas } from "./schemas.ts";
import { foldName, listNames } from "./taken_names.ts";

/** The parts that all operations of an API share. */
export interface ApiParts {
  readonly document: ApiDocument;
  readonly schemas: { readonly arguments: Schemas; readonly results: Schemas };
  /** Returns the documented schema of the results of an operation, for servers that do not check results. */
  readonly findResult: (id: string) => JsonSchema | undefined;
  /** Returns the URL to which the path of an operation is appended. Returns `undefined` if the operation has none. */
  readonly findBase: (operation: ApiOperation) => URL | undefined;
  /** The start of the URIs of resources, such as `api://petstore`. */
  readonly uri: string;
  readonly options: OpenApiOptions;
}

/** The parts from which one operation is made. */
export interface OperationParts extends ApiParts {
  /** The changes of arguments by `transform`. */
  readonly changes: Readonly<Record<string, object>>;
}

export type MadeOperation =
  | { readonly handler: Handler; readonly definition: object; readonly cut: number }
  | { readonly reason: string };

/** Maximum length of the description of a tool, in characters. Some clients truncate longer descriptions. */
const MAX_DESCRIPTION = 1024;
/** Methods that do not change anything. */

/** @throws {TypeError} if the operation cannot be a resource or template. */
export function makeOperation(
  given: DocumentOperation,
  kind: Exclude<OperationKind, "none">,
  parts: OperationParts,
): MadeOperation {
  try {
    return make(given, kind, parts);
  } catch (error) {
    if (error instanceof PartError) return { reason: error.message };
    throw error;
  }
}

function make(
  { node, shared, problem, ...operation }: DocumentOperation,
  kind: Exclude<OperationKind, "none">,
  parts: OperationParts,
): MadeOperation {
  if (problem !== undefined) throw new PartError(problem);
  const { document, options } = parts;
  const { method } = operation;
  const isSafe = SAFE.includes(method);
  if (options.readOnly && !isSafe) throw new PartError("it can change data (readOnly)");
  if (!isToken(method) || /^(trace|track|connect)$/i.test(method)) {
    throw new PartError(`no request can be a ${method}`);
  }
  const base = parts.findBase(operation);
  if (!base) {
    const [server] = operation.servers;
    const state = server === undefined ? "baseUrl returned no URL for it" : `it has a server of its own, ${server}`;
    throw new PartError(`${state}; return its URL from a function as baseUrl`);
  }
  const described = readParameters(document, shared, node.parameters);
  const sent = described.filter(({ place }) => place === "query").map(({ name }) => name);
  const path = parsePath(operation.path, sent);
  const security = readSecurity(document, node.security, options.auth ?? {});
  const hasBody = method !== "GET" && method !== "HEAD";
  const body = hasBody ? readBody(document, node.requestBody, parts.schemas.arguments) : undefined;
  if (!hasBody && resolveLoosely(document, node.requestBody).required === true) {
    throw new PartError(`a ${method} request cannot have a body`);
  }
  const parameters = toSendable(described, path, security);
  const sending: Sending = {
    operation,
    base,
    options,
    path,
    security,
    accept: readAccept(document, node),
  };
  const reserved = listReserved(path, security);
  const own = { parameters, body, isFlat: options.flatten ?? false, reserved };
  const args = toOperationArguments(own, parts.schemas.arguments);
  if (kind !== "tool") return makeResource(sending, args, { kind, uri: parts.uri });
  const output = options.output ?? "none";
  const result = output === "none" ? undefined : readResultSchema(document, node, parts.schemas.results);
  const schemes = security.alternatives.flat();
  const { changes } = parts;
  const nested = nestArguments(args.schema, {
    changes,
    optionalFields: args.optionalFields,
    schemes,
    id: operation.id,
  });
  const documented = output === "none" ? () => parts.findResult(operation.id) : () => result;
  const listed = { [LISTED]: { documented } };
  return makeTool(sending, { ...args, ...nested, listed }, result && { schema: result, isStrict: output === "strict" });
}

/** Returns the parameters that credentials do not set, and every parameter of the path, also if undocumented. */
function toSendable(
  parameters: readonly Parameter[],
  { names }: PathTemplate,
  { alternatives }: Security,
): readonly Parameter[] {
  const schemes = alternatives.flat();
  const isOwn = ({ place, name }: Parameter) =>
    schemes.some((scheme) => {
      const key = foldName(scheme.key);
      if (scheme.place === "header" && key === "cookie") return place === "cookie";
      return scheme.place === place && key === foldName(name);
    });
  const known = parameters.filter((each) => each.place === "path" ? names.includes(each.name) : !isOwn(each));
  const missing = names.filter((name) => !known.some((each) => each.place === "path" && each.name === name));
  const added = readParameters(
    { root: {}, version: "" },
    missing.map((name) => ({ name, in: "path", schema: { type: "string" } })),
  );
  return [...known, ...added];
}

function toSample(query: PathTemplate["query"]): string {
  return query.filter((piece) => typeof piece === "string").join("");
}

/** Returns the names that credentials and the path of the document set, which arguments must not bring. */
function listReserved(
  { query, pieces }: PathTemplate,
  { alternatives }: Security,
): readonly PlacedName[] {
  const texts = pieces.filter((piece) => typeof piece === "string");
  return [
    ...alternatives.flat().map(({ place, key }) => ({ place, name: key })),
    ...listNames(toSample(query).split("&").filter(Boolean)).map((name) => ({ place: "query" as const, name })),
    ...listNames(texts.flatMap((text) => text.split(";").slice(1))).map((name) => ({ place: "path" as const, name })),
  ];
}

/** The parts of an operation from which each call makes a request. They do not refer to the document. */
interface Sending {
  readonly operation: ApiOperation;
  readonly base: URL;
  readonly options: OpenApiOptions;
  readonly path: PathTemplate;
  readonly security: Security;
  readonly accept: string;
}

async function send(
  { operation, base, options, security, accept }: Sending,
  written: WrittenRequest,
  ctx: Context,
): Promise<Answer> {
  const { headers, body, query, cookies } = written;
  if (!headers.has("accept")) headers.set("accept", accept);
  const secrets = await addCredentials(security, written, { ctx, operation });
  if (cookies.length) headers.set("cookie", cookies.join("; "));
  const url = toUrl(base, written.path, query);
  const { fetch, maxBytes, allowPrivate, timeoutMs } = options;
  const outgoing = {
    url,
    method: operation.method,
    headers: new Headers([...headers]),
    body: body?.body,
    signal: ctx.signal,
  };
  const response = await sendGuarded(outgoing, {
    maxBytes,
    allowPrivate,
    timeoutMs: typeof timeoutMs === "function" ? checkTimeout(timeoutMs(operation), operation) : timeoutMs,
    fetch: fetch && ((request) => {
      setPrincipal(request, ctx.principal);
      return fetch(request);
    }),
  });
  return { response, url: url.origin + url.pathname, secrets, ctx };
}

/** @throws {TypeError} if the author's function returns no time. */
function checkTimeout(ms: number | undefined, { id }: ApiOperation): number | undefined {
  const problem = ms === undefined ? undefined : POSITIVE.findProblem(ms);
  if (problem === undefined) return ms;
  throw new TypeError(`Cannot call ${id}: the result of timeoutMs ${problem}`);
}

interface Result {
  readonly schema: JsonSchema;
  readonly isStrict: boolean;
}

function makeTool(
  sending: Sending,
  args: OperationArguments & NestedMembers & { readonly listed: object },
  result: Result | undefined,
): MadeOperation {
  const { operation, path } = sending;
  const { parameters, toBody, fixed, sent } = args;
  const { name, summary, tags } = operation;
  let check: CheckJson | undefined;
  const toCheck = () => check ??= result && createCheck(result.schema, `tool ${name}`, result.isStrict);
  const definition = {
    name,
    title: summary ? shorten(summary, 200) : toTitle(name),
    description: describe(operation),
    annotations: toHttpHints(operation.method),
    input: args.schema,
    ...result?.isStrict ? { output: result.schema } : {},
  };
  const run = async (input: Readonly<Record<string, unknown>>, ctx: Context): Promise<ToolResult> => {
    const written = writeArguments(placeNested(input, { fixed, sent }), { parameters, toBody }, path);
    return await toResult({ ...await send(sending, written, ctx), check: toCheck() });
  };
  try {
    return { handler: tool({ ...definition, ...args.listed, tags, run }), definition, cut: args.cut };
  } catch {
    // The schema has a part that the validator does not take. The API validates the arguments itself.
    const input = toLoose(args.schema);
    const loose = { ...definition, input, output: undefined };
    return { handler: tool({ ...loose, ...args.listed, tags, run }), definition: loose, cut: args.cut + 1 };
  }
}

/** Returns a schema with only the names of the arguments. */
function toLoose({ properties, required }: JsonSchema): JsonSchema {
  const names = Object.keys(Object(properties));
  return { type: "object", properties: Object.fromEntries(names.map((name) => [name, {}])), required };
}

function describe({ method, path, summary, description, isDeprecated }: ApiOperation): string {
  const [text = `${method} ${path}`] = [description, summary].filter((each) => each !== undefined);
  const isRepeated = summary === undefined || text.startsWith(summary.replace(/\.$/, ""));
  const whole = isRepeated ? text : `${summary.replace(/[.:]?$/, ".")} ${text}`;
  return shorten(isDeprecated ? `Deprecated. ${whole}` : whole, MAX_DESCRIPTION - 1);
}

interface ResourceOptions {
  readonly kind: "resource" | "template";
  readonly uri: string;
}

function makeResource(
  sending: Sending,
  args: OperationArguments,
  { kind, uri: start }: ResourceOptions,
): MadeOperation {
  const { operation, path } = sending;
  const { name, method, summary, tags, id } = operation;
  const refuse = (state: string) => new TypeError(`Cannot make a ${kind} of ${id}: ${state}`);
  if (method !== "GET") throw refuse(`it is a ${method} operation; make it a tool`);
  const shown = args.parameters.filter(({ place }) => place === "path" || place === "query");
  const hidden = args.parameters.find(({ place, isRequired }) => isRequired && place !== "path" && place !== "query");
  if (hidden) throw refuse(`it requires the ${hidden.place} ${hidden.name}; make it a tool`);
  const required = shown.find(({ isRequired }) => isRequired);
  if (kind === "resource" && required) throw refuse(`it requires ${required.name}; make it a template`);
  const used = kind === "resource" ? [] : shown;
  const names = nameArguments(used.map(({ argument: name, place }) => ({ name: toVariable(name), place })), []);
  const variables = used.map((parameter, i) => ({ ...parameter, variable: names[i] }));
  const uri = `${start}${toUriPath(path, variables)}`;
  const description = describe(operation);
  const definition = { uri, name, title: summary && shorten(summary, 200), description };
  const { parameters, toBody } = args;
  const read = async (given: Readonly<Record<string, unknown>>, ctx: Context, readUri: string) => {
    const input = Object.fromEntries(variables.map(({ argument, variable }) => [argument, given[variable]]));
    const written = writeArguments(input, { parameters, toBody }, path);
    return await toContents(await send(sending, written, ctx), readUri);
  };
  if (!isTemplate(uri)) {
    return {
      handler: resource({ ...definition, uri, tags, read: (uri, ctx) => read({}, ctx, uri) }),
      definition,
      cut: 0,
    };
  }
  const handler: ResourceTemplate<Readonly<Record<string, string>>> = resource({
    ...definition,
    uri,
    tags,
    read: (variables, ctx) => read(variables, ctx, handler.uri(variables)),
  });
  return { handler, definition, cut: 0 };
}

function isTemplate(uri: string): uri is `${string}{${string}}` {
  return uri.includes("{");
}

function toUriPath(
  { pieces }: PathTemplate,
  parameters: readonly (NamedParameter & { readonly variable: string })[],
): string {
  const path = pieces.map((piece) => {
    if (typeof piece === "string") return piece;
    const parameter = parameters.find(({ place, name }) => place === "path" && name === piece.name);
    return `{${parameter?.variable ?? toVariable(piece.name)}}`;
  }).join("");
  const query = parameters.filter(({ place }) => place === "query").map(({ variable }) => variable);
  return query.length ? `${path}{?${query.join(",")}}` : path;
}

function toVariable(argument: string): string {
  return argument.replace(/[^\w]/g, "_");
}
