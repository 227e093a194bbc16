/**
 * Converts results and errors to the formats of older revisions.
 *
 * @see specification/2025-06-18/changelog
 */
import { restoreText, toJsonText } from "../../../core/protocol/text_copy.ts";
import {
  INVALID_PARAMS,
  INVALID_REQUEST,
  McpError,
  MISSING_CAPABILITY,
  RESOURCE_NOT_FOUND,
} from "../../../core/protocol/errors.ts";
import { isObject, type Params, type Result } from "../../../core/protocol/jsonrpc.ts";
import { listChoices } from "../../../core/schema/walker.ts";
import type { ClientInfo } from "../../call/context.ts";
import type { Question } from "../../call/question.ts";
import type { Version } from "./versions.ts";

export function downgradeResult(method: string, result: Result, version: Version): Result {
  switch (method) {
    case "tools/list":
      return { ...result, tools: mapObjects(result.tools, (tool) => downgradeTool(tool, version)) };
    case "tools/call":
      return downgradeToolResult(result, version);
    case "prompts/get":
      return {
        ...result,
        messages: mapObjects(
          result.messages,
          ({ content, ...rest }) => ({
            ...rest,
            content: isObject(content) ? downgradeContent(content, version) : content,
          }),
        ),
      };
    default:
      return result;
  }
}

export function downgradeError(method: string, error: McpError): McpError {
  const isMissing = method === "resources/read" && error.code === INVALID_PARAMS &&
    isObject(error.data) &&
    "uri" in error.data;
  if (isMissing) return new McpError(RESOURCE_NOT_FOUND, error.message, error.data);
  if (error.code === MISSING_CAPABILITY) return new McpError(INVALID_REQUEST, error.message, error.data);
  return error;
}

/** `restore` converts the answer back. */
export function downgradeQuestion(
  { method, params }: Question,
  { version, capabilities }: ClientInfo,
): { readonly params: Params; readonly restore?: (answer: unknown) => unknown } {
  // Up to 2025-11-25, a URL elicitation requires an id.
  if (params.mode === "url") return { params: { ...params, elicitationId: crypto.randomUUID() } };
  if (version >= "2025-11-25") return { params };
  if (method === "sampling/createMessage") return { params: downgradeSampling(params, version) };
  // Elicitation modes exist since 2025-11-25. A client that declares the mode `form` supports the forms of that
  // revision, so do not convert its forms.
  const isForm = method === "elicitation/create" && !capabilities.elicitation?.form;
  return isForm ? downgradeForm(params) : { params };
}

// Up to 2025-11-25, structured content must be an object, and its schema must have the type "object". Before
// 2025-06-18, tools had neither structured content nor an output schema.
function downgradeTool(tool: Result, version: Version): Result {
  const old: Result = { ...tool, inputSchema: downgradeSchema(tool.inputSchema) };
  const { outputSchema, ...rest } = old;
  return version >= "2025-06-18" && isObject(outputSchema) && outputSchema.type === "object"
    ? { ...rest, outputSchema: downgradeSchema(outputSchema) }
    : rest;
}

// Up to 2025-11-25, a property's schema must be an object. `{}` replaces `true`, and `{ not: {} }` replaces `false`.
function downgradeSchema(schema: unknown): unknown {
  if (!isObject(schema) || !isObject(schema.properties)) return schema;
  const properties = Object.entries(schema.properties);
  if (!properties.some(([, property]) => typeof property === "boolean")) return schema;
  const toObject = (property: unknown) => property === true ? {} : property === false ? { not: {} } : property;
  return { ...schema, properties: Object.fromEntries(properties.map(([name, each]) => [name, toObject(each)])) };
}

function downgradeToolResult(result: Result, version: Version): Result {
  const isNew = version >= "2025-06-18";
  const { structuredContent } = result;
  if (isNew && (structuredContent === undefined || isJsonObject(structuredContent))) return result;
  const { structuredContent: _, ...rest } = restoreText(result);
  // If the result has only structured content, copy the structured content to `content` as text. Otherwise the client
  // would receive an empty result.
  const isBare = structuredContent !== undefined && Array.isArray(rest.content) && !rest.content.length;
  const content = isBare ? [{ type: "text", text: toJsonText(structuredContent) }] : rest.content;
  return { ...rest, content: mapObjects(content, (block) => downgradeContent(block, version)) };
}

/** Tests whether JSON represents a value as an object. Dates, URLs and boxed strings become strings. */
function isJsonObject(value: unknown): boolean {
  if (!isObject(value)) return false;
  const isPlain = Object.getPrototypeOf(value) === Object.prototype && !("toJSON" in value);
  return isPlain || JSON.stringify(value)?.[0] === "{";
}

function downgradeContent(block: Result, version: Version): Result {
  if (block.type === "resource_link" && version < "2025-06-18") {
    return { type: "text", text: `${block.title ?? block.name}: ${block.uri}` };
  }
  if (block.type === "audio" && version < "2025-03-26") {
    const { data, mimeType, type: _, ...rest } = block;
    return { type: "resource", resource: { uri: "result:audio", mimeType, blob: data }, ...rest };
  }
  return block;
}

// Before 2025-11-25, a message contains one content block. Before 2025-03-26, a message cannot contain audio.
function downgradeSampling(params: Params, version: string): Params {
  const messages = Array.isArray(params.messages) ? params.messages : [];
  const single = messages.flatMap(({ content, ...message }) =>
    [content].flat().map((content) => ({ ...message, content }))
  );
  if (version < "2025-03-26" && single.some(({ content }) => content.type === "audio")) {
    throw new McpError(
      INVALID_REQUEST,
      `Cannot ask the client: revision ${version} does not allow audio in sampling messages`,
    );
  }
  return { ...params, messages: single };
}

/** The boolean fields that replace a multiple-choice field. Maps the name of each boolean field to its option. */
type Switches = ReadonlyMap<string, unknown>;

// Before 2025-11-25, the titles of a choice are in `enumNames`, and forms have no multiple-choice fields. Each option
// of a multiple-choice field becomes a boolean field.
function downgradeForm(params: Params): ReturnType<typeof downgradeQuestion> {
  const { properties, required, ...schema }: Params = Object(params.requestedSchema);
  const given: Params = Object(properties);
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const split = new Map<string, Switches>();
  const fields = Object.entries(given).flatMap(([name, field]) => {
    if (!isObject(field)) return [];
    const { oneOf, ...rest } = field;
    if (Array.isArray(oneOf)) {
      return [[name, { ...rest, enum: oneOf.map((one) => one.const), enumNames: oneOf.map((one) => one.title) }]];
    }
    if (field.type !== "array") return [[name, field]];
    const choices = toChoices(field);
    // Change a name that another field of the form already has.
    const names = choices.map(({ value }) =>
      Object.hasOwn(given, `${name}: ${value}`) ? `${name}:: ${value}` : `${name}: ${value}`
    );
    split.set(name, new Map(choices.map(({ value }, i) => [names[i], value])));
    const chosen: readonly unknown[] = Array.isArray(field.default) ? field.default : [];
    return choices.map(({ value, title }, i) => [names[i], {
      type: "boolean",
      title: `${field.title ?? name}: ${title}`,
      ...field.description === undefined ? {} : { description: field.description },
      ...chosen.includes(value) ? { default: true } : {},
    }]);
  });
  const left = needed.filter((name) => !split.has(String(name)));
  return {
    params: {
      ...params,
      requestedSchema: { ...schema, properties: Object.fromEntries(fields), ...left.length ? { required: left } : {} },
    },
    restore: split.size ? (answer) => restoreChoices(answer, split, needed) : undefined,
  };
}

function toChoices({ items }: Params): readonly { readonly value: string; readonly title: string }[] {
  const choices = listChoices(Object(items)) ?? [];
  return choices.map(({ value, title = value }) => ({ value: String(value), title: String(title) }));
}

// If the user chose no option, omit the multiple-choice field from the answer, unless the form requires the field.
function restoreChoices(answer: unknown, split: ReadonlyMap<string, Switches>, needed: readonly unknown[]): unknown {
  if (!isObject(answer) || !isObject(answer.content)) return answer;
  const content: Record<string, unknown> = { ...answer.content };
  for (const [name, switches] of split) {
    const touched = [...switches].filter(([each]) => Object.hasOwn(content, each));
    if (touched.length || needed.includes(name)) {
      content[name] = touched.flatMap(([each, value]) => content[each] === true ? [value] : []);
    }
    for (const [each] of touched) delete content[each];
  }
  return { ...answer, content };
}

function mapObjects(list: unknown, change: (item: Result) => Result): unknown {
  return Array.isArray(list) ? list.map((item) => isObject(item) ? change(item) : item) : list;
}
