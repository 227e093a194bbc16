/**
 * Writes arguments in the styles of the specification, such as `form` and `deepObject`.
 *
 * @see OpenAPI specification, Style Values and Style Examples
 */
import { isObject } from "../../core/kit/json.ts";
import { ToolError } from "../../library.ts";
import { encodeArgument, toArgumentText } from "../tool_input.ts";

export interface Style {
  readonly style: string;
  /** Whether each item or member has its own name. */
  readonly isExploded: boolean;
  /** Whether reserved characters that cannot add a parameter stay as they are. */
  readonly allowsReserved?: boolean;
}

/**
 * Reserved characters that neither end the query nor separate or name its parameters. Some servers separate parameters
 * at `;`, and `+` means a space.
 */
const RESERVED = /%(3A|2F|3F|40|21|24|27|28|29|2A|2C|5B|5D)/g;

function encode(value: unknown, { allowsReserved }: Style): string {
  const text = value === null ? "" : encodeArgument(value);
  return allowsReserved ? text.replace(RESERVED, decodeURIComponent) : text;
}

/** The separators of lists that are not exploded, by style. */
const SEPARATORS: Readonly<Record<string, string>> = {
  form: ",",
  spaceDelimited: "%20",
  pipeDelimited: "%7C",
  tabDelimited: "%09",
};

/** Writes a value as pairs of a query or of a form. Returns no pairs for `null`, and for an empty list or object. */
export function toStyledPairs(name: string, value: unknown, style: Style): readonly string[] {
  const key = encodeArgument(name);
  const pair = (key: string, value: unknown) => `${key}=${encode(value, style)}`;
  if (value === null) return [];
  const separator = SEPARATORS[style.style] ?? ",";
  if (Array.isArray(value)) {
    if (style.style === "deepObject") return toDeepPairs(key, value, style);
    if (style.isExploded) return value.map((item) => pair(key, item));
    return value.length ? [`${key}=${value.map((item) => encode(item, style)).join(separator)}`] : [];
  }
  if (!isObject(value)) return [pair(key, value)];
  if (style.style === "deepObject") return toDeepPairs(key, value, style);
  if (style.isExploded) {
    // The specification leaves lists in objects open. Frameworks such as Spring read a name for each item.
    return Object.entries(value).flatMap(([name, item]) =>
      (Array.isArray(item) ? item : [item]).map((each) => pair(encodeArgument(name), each))
    );
  }
  const members = Object.entries(value).map(([name, item]) => [encodeArgument(name), encode(item, style)] as const);
  return members.length ? [`${key}=${members.flat().join(separator)}`] : [];
}

/**
 * Writes an object or a list with brackets, such as `filter[name]=a` and `ids[0]=1`. The specification leaves lists and
 * deeper levels open. Servers that read such parameters, such as those of PHP and Rails, read indexes in the same way.
 */
function toDeepPairs(key: string, value: object, style: Style): readonly string[] {
  return Object.entries(value).flatMap(([name, item]: [string, unknown]): readonly string[] => {
    const inner = `${key}%5B${encodeArgument(name)}%5D`;
    if (item === null || item === undefined) return [];
    return typeof item === "object" ? toDeepPairs(inner, item, style) : [`${inner}=${encode(item, style)}`];
  });
}

/** Writes a value as part of a path, in the style `simple`, `label` or `matrix`. */
export function toStyledSegment(name: string, value: unknown, style: Style): string {
  const { isExploded } = style;
  const key = encodeArgument(name);
  const items = Array.isArray(value) ? value.map((item) => encode(item, style)) : undefined;
  const members = isObject(value)
    ? Object.entries(value).map(([name, item]) => [encodeArgument(name), encode(item, style)] as const)
    : undefined;
  const named = members?.map((member) => member.join("="));
  const parts = items ?? (isExploded ? named : members?.flat());
  if (style.style === "label") {
    return `.${(parts ?? [encode(value, style)]).join(isExploded ? "." : ",")}`;
  }
  if (style.style === "matrix") {
    if (!parts) return toMatrix(key, encode(value, style));
    if (!isExploded) return toMatrix(key, parts.join(","));
    return named ? named.map((each) => `;${each}`).join("") : parts.map((each) => toMatrix(key, each)).join("");
  }
  return (parts ?? [encode(value, style)]).join(",");
}

function toMatrix(key: string, value: string): string {
  return value ? `;${key}=${value}` : `;${key}`;
}

/** Writes a value as the text of a header, in the style `simple`. Characters are not encoded. */
export function toStyledHeader(value: unknown, { isExploded }: Style): string {
  if (Array.isArray(value)) return value.map(toHeaderText).join(",");
  if (!isObject(value)) return toHeaderText(value);
  const members = Object.entries(value).map(([name, item]) => [toHeaderPart(name), toHeaderPart(item)]);
  return isExploded ? members.map((member) => member.join("=")).join(",") : members.flat().join(",");
}

/** @throws {ToolError} if a part of an object would add a member, because headers are not encoded. */
function toHeaderPart(value: unknown): string {
  const text = toHeaderText(value);
  if (!/[,=]/.test(text)) return text;
  throw new ToolError(
    `Cannot send the request: a member of an object in a header contains ${text.includes(",") ? "," : "="}; remove it`,
  );
}

function toHeaderText(value: unknown): string {
  return value === null ? "" : toArgumentText(value);
}
