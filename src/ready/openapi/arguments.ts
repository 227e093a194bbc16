/**
 * Turns the parameters and the body of an operation into arguments, and arguments into a request.
 */
import type { JsonSchema } from "../../library.ts";
import { type Arguments, toArguments } from "../tool_input.ts";
import type { Body, WrittenBody } from "./body.ts";
import type { Target } from "./credentials.ts";
import { createToExact, type ToExact } from "./exact_numbers.ts";
import { areArgumentNames, nameArguments } from "./names.ts";
import type { Parameter } from "./parameters.ts";
import { fillPath, type PathTemplate } from "./path_template.ts";
import type { ClosedSchema, Schemas } from "./schemas.ts";
import { BroughtNames, listNames, TakenNames } from "./taken_names.ts";

/** A parameter with the name of its argument. It does not refer to the document. */
export interface NamedParameter extends Pick<Parameter, "name" | "place" | "isRequired" | "write"> {
  readonly argument: string;
  /** The names in the part of the request to which it belongs. */
  readonly taken?: TakenNames;
}

export interface OperationArguments extends ClosedSchema {
  readonly parameters: readonly NamedParameter[];
  /** Names of the arguments that are optional fields of the body. `undefined` if the body is one argument. */
  readonly optionalFields?: readonly string[];
  /** Returns the body, or `undefined` if the arguments have none. */
  readonly toBody: (args: Arguments) => WrittenBody | undefined;
}

interface Given {
  readonly parameters: readonly Parameter[];
  readonly body?: Body;
  /** Whether the fields of the body are arguments, if no names clash. */
  readonly isFlat: boolean;
  /** The names in a request that belong to credentials, or to the path of the operation. */
  readonly reserved: readonly PlacedName[];
}

export type PlacedName = Pick<Parameter, "name" | "place">;

const BODY = "body";

export function toOperationArguments(given: Given, schemas: Schemas): OperationArguments {
  const { parameters, body, isFlat, reserved } = given;
  const fields = isFlat ? findFields(parameters, body) : undefined;
  const names = nameArguments(parameters, body ? Object.keys(fields?.properties ?? { [BODY]: 0 }) : []);
  const parts = Map.groupBy([...parameters, ...reserved], ({ place }) => toPart(place));
  const taken = new Map([...parts].map(([part, all]) => [part, new TakenNames(part, all.map(({ name }) => name))]));
  const named = parameters.map(({ name, place, isRequired, write }, i) => {
    return { name, place, isRequired, write, argument: names[i], taken: taken.get(toPart(place)) };
  });
  const entries = parameters.map(({ schema, description }, i) =>
    [names[i], describe(schemas.convert(schema ?? true), description)] as const
  );
  const required = named.filter(({ isRequired }) => isRequired).map(({ argument }) => argument);
  if (body && fields) {
    const { properties = {}, required: own = [] } = schemas.convert({
      type: "object",
      properties: fields.properties,
      required: fields.required,
    });
    entries.push(...Object.entries(properties as Record<string, JsonSchema>)); // The cast is safe, because properties are schemas.
    if (body.isRequired) required.push(...own as string[]); // The cast is safe, because these are names.
  } else if (body) {
    const isDescribed = body.description !== undefined || body.schema.description !== undefined;
    entries.push([BODY, describe(body.schema, isDescribed ? body.description : "Body of the request.")]);
    if (body.isRequired) required.push(BODY);
  }
  const root: JsonSchema = {
    type: "object",
    properties: Object.fromEntries(entries),
    ...required.length ? { required } : {},
    additionalProperties: false,
  };
  const closed = schemas.close(root);
  const written: unknown = fields ? closed.schema : Object(closed.schema.properties)[BODY];
  const toExact = createToExact(closed.schema, written);
  return {
    ...closed,
    parameters: named,
    optionalFields: fields && Object.keys(fields.properties).filter((name) => !fields.required?.includes(name)),
    toBody: createBodyWriter(body, fields, toExact),
  };
}

function toPart(place: Parameter["place"]): string {
  return place === "querystring" ? "query" : place;
}

/**
 * Returns a function that writes the body. It is created here, because a function that is created next to functions with
 * the document would hold the document in memory.
 */
function createBodyWriter(
  body: Body | undefined,
  fields: Body["fields"],
  toExact: ToExact,
): OperationArguments["toBody"] {
  if (!body) return () => undefined;
  const { write, isRequired } = body;
  if (!fields) return (args) => args[BODY] === undefined ? undefined : write(args[BODY], toExact);
  const names = Object.keys(fields.properties);
  return (args) => {
    const given = names.filter((name) => args[name] !== undefined);
    if (!given.length && !isRequired) return;
    return write(Object.fromEntries(given.map((name) => [name, args[name]])), toExact);
  };
}

/** Returns the fields of a body if each of them can be an argument, and none has the name of another argument. */
function findFields(parameters: readonly Parameter[], body: Body | undefined): Body["fields"] {
  const { fields } = body ?? {};
  if (!fields || !areArgumentNames(fields.properties)) return;
  const names = nameArguments(parameters, []);
  return names.some((name) => Object.hasOwn(fields.properties, name)) ? undefined : fields;
}

function describe(schema: JsonSchema, description: string | undefined): JsonSchema {
  if (description === undefined) return schema;
  const notes = typeof schema.description === "string" ? schema.description : "";
  // The description of a parameter is more exact than the description of its type.
  const [, own = ""] = /((?:Pattern|Default): .*)$/s.exec(notes) ?? [];
  const { title: _title, ...rest } = schema;
  return { ...rest, description: [description.trim().slice(0, 1000), own].filter(Boolean).join(" ") };
}

export interface WrittenRequest extends Target {
  readonly path: string;
  readonly body?: WrittenBody;
}

/**
 * Parameters without a value are not sent.
 *
 * @throws {ToolError} if an argument cannot be sent.
 */
export function writeArguments(
  given: Arguments,
  { parameters, toBody }: Pick<OperationArguments, "parameters" | "toBody">,
  template: PathTemplate,
): WrittenRequest {
  const args = toArguments(given);
  const headers = new Map<string, string>();
  const query: string[] = [];
  const cookies: string[] = [];
  const segments = new Map<string, string>();
  const brought = { query: new BroughtNames(), cookie: new BroughtNames(), path: new BroughtNames() };
  for (const { name, place, argument, write, taken } of parameters) {
    const value = args[argument];
    if (value === undefined) continue;
    const written = write(value);
    if (place === "header") {
      const isEmpty = value === null || typeof value === "object" && !Object.keys(value).length;
      if (!isEmpty) headers.set(name.toLowerCase(), written.join(""));
      continue;
    }
    // In the style `matrix`, a segment of a path has names too.
    const pairs = place === "path" ? written.flatMap((segment) => segment.split(";").slice(1)) : written;
    const names = listNames(pairs);
    taken?.check(names, { argument, own: name });
    brought[place === "querystring" ? "query" : place].add(names, { argument, own: name });
    if (place === "path") segments.set(name, written.join(""));
    else if (place === "cookie") cookies.push(...written);
    else query.push(...written);
  }
  const filled = fillPath(template, (name) => segments.get(name) ?? "");
  const body = toBody(args);
  if (body) headers.set("content-type", body.contentType);
  return { path: filled.path, headers, query: [filled.query, ...query], cookies, body };
}
