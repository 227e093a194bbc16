/**
 * Request bodies that contain arguments. Each argument is encoded for the language of the body, so that an argument
 * cannot add fields or change the structure of the body.
 */
import { show } from "../core/known_options.ts";
import { isObject } from "../core/kit/json.ts";
import type { ParseTemplate } from "./http_template.ts";
import { type KeyPath, type ToProblem, withPath } from "./problem.ts";
import type { Template } from "./template.ts";
import { type Arguments, encodeArgument, toArgumentText, type ToolInput, toPairs } from "./tool_input.ts";

/** The parts of a request that define its body. At most one of `body`, `json` and `form` is set. */
export interface BodyDefinition {
  readonly body?: unknown;
  readonly json?: unknown;
  readonly form?: Readonly<Record<string, string>>;
  readonly contentType?: string;
}

export interface FilledBody {
  readonly text?: string;
  /** The content type. `undefined` if the headers of the request contain the content type. */
  readonly contentType?: string;
}

export type FillBody = (args: Arguments) => FilledBody;

interface BodyOptions {
  readonly input: ToolInput;
  readonly parse: ParseTemplate;
  readonly toProblem: ToProblem;
}

const FORM = "application/x-www-form-urlencoded";
const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain;charset=UTF-8";

/** Whether a media type, without parameters, is JSON. */
export function isJsonType(mediaType: string): boolean {
  return /^application\/(.*\+)?json$/.test(mediaType);
}

/** @throws the error that `toProblem` returns, if an argument could change the structure of the body. */
export function parseBody({ body, json, form, contentType }: BodyDefinition, options: BodyOptions): FillBody {
  const { toProblem } = options;
  const type = contentType?.split(";")[0].trim().toLowerCase();
  const given = Object.entries({ body, json, form }).filter(([, value]) => value !== undefined);
  const [key] = given.map(([name]) => name);
  if (given.length > 1) {
    throw toProblem([given[1][0]], `the request also has ${key}; remove one of the two`);
  }
  if (form !== undefined) {
    checkType([key, type], { expected: FORM, fits: type === FORM }, toProblem);
    return parseForm(form, type, options);
  }
  if (json === undefined && (body === undefined || typeof body === "string")) {
    return body === undefined ? () => ({}) : parseText(body, type, options);
  }
  checkType([key, type], { expected: JSON_TYPE, fits: isJsonType(type ?? "") }, toProblem);
  const fill = parseJson(
    toPlain(json === undefined ? body : json, key, toProblem),
    (text, path) => parseOptional(text, [key, ...path], options),
  );
  return (args) => {
    const value = fill(args);
    return value === undefined ? {} : { text: JSON.stringify(value), contentType: type ? undefined : JSON_TYPE };
  };
}

/** Converts a value to JSON, because a value such as a date becomes another value in JSON. */
function toPlain(value: unknown, key: string, toProblem: ToProblem): unknown {
  const text: string | undefined = withPath(() => JSON.stringify(value), toProblem, [key]);
  if (text === undefined) throw toProblem([key], "JSON cannot represent it; use an object, a list or a string");
  return JSON.parse(text);
}

function checkType(
  [key, type]: readonly [key: string, type: string | undefined],
  { expected, fits }: { readonly expected: string; readonly fits: boolean },
  toProblem: ToProblem,
): void {
  if (type === undefined || fits) return;
  throw toProblem([key], `the content type in headers is ${show(type)}; remove it, because ${key} is ${expected}`);
}

function parseOptional(text: string, path: KeyPath, { parse, input }: BodyOptions): Template {
  return parse(text, path, input.names);
}

function parseForm(
  form: Readonly<Record<string, string>>,
  type: string | undefined,
  options: BodyOptions,
): FillBody {
  const fields = Object.entries(form).map(([key, text]) => [key, parseOptional(text, ["form", key], options)] as const);
  return (args) => ({ text: toPairs(fields, args).join("&"), contentType: type ? undefined : FORM });
}

function parseText(body: string, type: string | undefined, options: BodyOptions): FillBody {
  const template = parseOptional(body, ["body"], options);
  const { onlyArgument } = template;
  // The definition leaves the whole body to the call.
  if (onlyArgument !== undefined) {
    return ({ [onlyArgument]: value }) => {
      if (value === undefined) return {};
      const own = typeof value === "string" ? TEXT_TYPE : JSON_TYPE;
      return { text: toArgumentText(value), contentType: type ? undefined : own };
    };
  }
  const encode = template.names.length ? findEncoder(template, type, options.toProblem) : String;
  return (args) => ({
    text: template.fill((name) => args[name] === undefined ? "" : encode(toArgumentText(args[name]))),
    contentType: type ? undefined : TEXT_TYPE,
  });
}

/**
 * Returns the function that encodes arguments for the language of a text body.
 *
 * @throws the error that `toProblem` returns, if arguments cannot be encoded for the language.
 */
function findEncoder(template: Template, type: string | undefined, toProblem: ToProblem): (text: string) => string {
  const refuse = (state: string) => toProblem(["body"], state);
  const marked = template.fill(() => "\0");
  const parts = marked.split("\0");
  const start = parts.join("").trimStart();
  if (isJsonType(type ?? "") || type === undefined && /^["[{]/.test(start)) {
    throw refuse('it is JSON text, to which an argument could add fields; use json, such as { "name": "{{name}}" }');
  }
  if (type === undefined && start.startsWith("<")) {
    throw refuse(
      "it looks like XML, to which an argument could add elements; set the header content-type to application/xml, so " +
        "that arguments are escaped",
    );
  }
  if (type === undefined && isFormText(marked)) {
    throw refuse(
      "it looks like a form, to which an argument could add fields; use form, or set the header content-type to text/plain",
    );
  }
  if (type === undefined || type === "text/plain") return String;
  if (type === FORM) return encodeArgument;
  if (!/^(text|application)\/(.*\+)?xml$/.test(type)) {
    throw refuse(
      `arguments cannot be encoded for the content type ${
        show(type)
      }; make an argument the whole body, or use json or ` +
        "form",
    );
  }
  if (!parts.slice(0, -1).every((_, i) => XML_BEFORE.test(parts.slice(0, i + 1).join("")))) {
    throw refuse(
      "in XML, an argument can only be text in an element, or part of a quoted attribute; move the argument",
    );
  }
  return toXmlText;
}

/**
 * Tests whether text with a NUL character for each argument looks like the fields of a form. An argument next to `=` or
 * `&` suffices, because the keys of forms may contain any character.
 */
function isFormText(marked: string): boolean {
  if (/[=&]\0|\0[=&]/.test(marked)) return true;
  const text = marked.replaceAll("\0", "x").trim();
  const fields = text.split("&").filter(Boolean);
  if (fields.length < 2) return FORM_FIELD.test(text);
  return text.includes("=") && fields.every((field) => /^(\s*[^\s=]+=|[^\s=]+$)/.test(field));
}

/** Matches a single field of a form. Only common keys match, because other texts may contain `=` too. */
const FORM_FIELD = /^[\p{L}\p{N}_.%+[\]$@:-]+=[^\n]*$/u;

/** A tag up to its end or up to the quote of an attribute. A quoted attribute may contain `>`. */
const XML_TAG = `<(?!!)(?:[^<>"']|"[^<"]*"|'[^<']*')*`;
/** Matches XML that ends in the text of an element, or in a quoted attribute. */
const XML_BEFORE = new RegExp(
  String.raw`^[^<]*(?:(?:${XML_TAG}|<!--[^<>]*--)>[^<]*)*(?:${XML_TAG}=\s*(?:"[^<"]*|'[^<']*))?$`,
);

function toXmlText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Returns a function that fills in the arguments, and omits a property that is only a missing argument. */
function parseJson(
  value: unknown,
  parse: (text: string, path: KeyPath) => Template,
  path: KeyPath = [],
): (args: Arguments) => unknown {
  if (typeof value === "string") {
    const template = parse(value, path);
    const { onlyArgument } = template;
    if (onlyArgument !== undefined) return (args) => args[onlyArgument];
    return (args) => template.fill((name) => args[name] === undefined ? "" : toArgumentText(args[name]));
  }
  if (Array.isArray(value)) {
    const items = value.map((item, i) => parseJson(item, parse, [...path, i]));
    return (args) => items.map((fill) => fill(args)).filter((item) => item !== undefined);
  }
  if (isObject(value)) {
    const fields = Object.entries(value).map(([key, part]) => [key, parseJson(part, parse, [...path, key])] as const);
    return (args) => Object.fromEntries(fields.map(([key, fill]) => [key, fill(args)]));
  }
  return () => value;
}
