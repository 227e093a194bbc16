// Lists the ways in which the specification lets a parameter value be written.

import { isAtLeast, isObject, member, type ObjectValue, textMember, type Version } from "./document.ts";
import type { Pair } from "./pairs.ts";
import {
  dataPiece,
  type DataRules,
  delimiter,
  holdsLeaves,
  isJsonOf,
  jsonPiece,
  type Piece,
  scalarTexts,
} from "./text.ts";

/** A list of pieces for every right spelling. */
export type Spellings = readonly (readonly Piece[])[];

export interface Style {
  readonly name: string;
  readonly isExploded: boolean;
  readonly isReservedAllowed: boolean;
}

const STYLES_BY_PLACE: Readonly<Record<string, readonly string[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
};

/**
 * The style of a parameter of 3.x, or of an Encoding Object with `place` query. A style that the place does not permit
 * ("Combinations not represented in this table are not permitted", Style Values) is read as the default.
 */
export function readStyle(holder: ObjectValue, place: string, version: Version): Style {
  const allowed = [...STYLES_BY_PLACE[place] ?? [], ...place === "cookie" && version === "3.2" ? ["cookie"] : []];
  const given = textMember(holder, "style");
  const name = given !== undefined && allowed.includes(given) ? given : allowed[0] ?? "form";
  const explode = member(holder, "explode");
  const isExploded = typeof explode === "boolean" ? explode : name === "form" || name === "cookie";
  // Before 3.2 `allowReserved` "only applies to parameters with an `in` value of `query`".
  const isReservedAllowed = member(holder, "allowReserved") === true && (place === "query" || version === "3.2");
  return { name, isExploded, isReservedAllowed };
}

/** RFC 6570 calls null, and lists and objects without values, undefined: such a parameter is left out. */
export function isUndefined(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  if (Array.isArray(value)) return value.every((item) => item === null || item === undefined);
  return isObject(value) && Object.values(value).every((item) => item === null || item === undefined);
}

function entriesOf(value: ObjectValue): readonly (readonly [string, unknown])[] {
  return Object.entries(value).filter(([, item]) => item !== undefined);
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

/** The lists to write: RFC 6570 drops null members, Appendix B also lets them be written as text. */
function withAndWithoutNull<Item>(
  items: readonly Item[],
  isNull: (item: Item) => boolean,
): readonly (readonly Item[])[] {
  const kept = items.filter((item) => !isNull(item));
  return kept.length === items.length ? [items] : [kept, items];
}

export function joinPieces(parts: Spellings, separator: readonly Piece[]): readonly Piece[] {
  return parts.flatMap((part, index) => index === 0 ? part : [...separator, ...part]);
}

/** Values joined by one delimiter: `a,b` for lists; `k,v` or `k=v` for objects. */
function joinValue(
  value: unknown,
  separator: readonly Piece[],
  assign: readonly Piece[],
  rules: DataRules,
  /** A single value has no delimiters, so fewer characters must be encoded in it. */
  scalarEncoded = "",
): Spellings {
  if (Array.isArray(value)) {
    const items: readonly unknown[] = value.filter((item) => item !== undefined);
    return withAndWithoutNull(items, (item) => item === null).map((kept) =>
      joinPieces(kept.map((item) => [dataPiece(item, rules)]), separator)
    );
  }
  if (isObject(value)) {
    return withAndWithoutNull(entriesOf(value), ([, item]) => item === null).map((kept) =>
      joinPieces(kept.map(([name, item]) => [dataPiece(name, rules), ...assign, dataPiece(item, rules)]), separator)
    );
  }
  return [[dataPiece(value, { ...rules, encoded: scalarEncoded })]];
}

function pair(name: string, value: readonly Piece[], isOptional = false): Pair {
  return { name, value, isOptional };
}

function scalarPair(name: string, value: unknown, rules: DataRules): Pair {
  return pair(name, [dataPiece(value, rules)], value === null);
}

/**
 * Nested names: "The representation of array or object properties is not defined" (Style Values), so the usual three
 * forms of lists are right: with an index, with the name repeated, and with empty brackets.
 */
function nestedPairs(name: string, value: unknown, listForm: "index" | "repeat" | "empty", rules: DataRules): Pair[] {
  if (Array.isArray(value)) {
    if (value.length === 0) return [pair(name, [delimiter("", "any")], true), pair(`${name}[]`, [], true)];
    return value.flatMap((item, index) => {
      const suffix = listForm === "index" ? `[${index}]` : listForm === "empty" ? "[]" : "";
      return nestedPairs(`${name}${suffix}`, item, listForm, rules);
    });
  }
  if (isObject(value)) {
    const entries = entriesOf(value);
    if (entries.length === 0) return [pair(name, [], true)];
    return entries.flatMap(([key, item]) => nestedPairs(`${name}[${key}]`, item, listForm, rules));
  }
  return value === undefined ? [] : [scalarPair(name, value, rules)];
}

function nestedForms(write: (listForm: "index" | "repeat" | "empty") => Pair[]): readonly (readonly Pair[])[] {
  return [write("index"), write("repeat"), write("empty")];
}

/** All ways to write a value as pairs of a query, form, or (with the same names) parts of multipart/form-data. */
export function stylePairs(name: string, value: unknown, style: Style): readonly (readonly Pair[])[] {
  if (value === undefined) return [[]];
  if (isUndefined(value)) return undefinedPairs(name, value);
  const rules: DataRules = { encoded: "", isReservedAllowed: style.isReservedAllowed };
  // "Delimiters in Parameter Values": they are encoded inside of values unless `allowReserved` is true; what raw ones
  // mean then is undefined.
  const listRules: DataRules = { ...rules, encoded: style.isReservedAllowed ? "" : "," };
  const comma = [delimiter(",", "raw")];
  if (isScalar(value)) return [[scalarPair(name, value, rules)]];

  switch (style.name) {
    case "deepObject":
      return nestedForms((listForm) =>
        isObject(value)
          ? entriesOf(value).flatMap(([key, item]) => nestedPairs(`${name}[${key}]`, item, listForm, rules))
          : nestedPairs(name, value, listForm, rules)
      );
    case "spaceDelimited":
    case "pipeDelimited": {
      // The delimiter is encoded too, so it cannot be told from the same character in a value (Appendix E).
      const separator = [delimiter(style.name === "spaceDelimited" ? " " : "|", "any")];
      const joined = joinValue(value, separator, separator, rules).map((pieces) => [pair(name, pieces)]);
      if (!style.isExploded) return joined;
      // The table of "Style Examples" has n/a for these styles with `explode`: anything sensible is right.
      const assigned = joinValue(value, separator, [delimiter("=", "any")], rules).map((
        pieces,
      ) => [pair(name, pieces)]);
      return [...explodedPairs(name, value, rules), ...joined, ...assigned];
    }
    default:
      if (style.isExploded) return explodedPairs(name, value, rules);
      return joinValue(value, comma, comma, listRules).map((pieces) => [pair(name, pieces)]);
  }
}

/** A list of nulls only may be left out, or written as text. */
function undefinedPairs(name: string, value: unknown): readonly (readonly Pair[])[] {
  if (Array.isArray(value) && value.length > 0) {
    return [[], value.map((item) => pair(name, [dataPiece(item, { encoded: "", isReservedAllowed: false })]))];
  }
  if (isObject(value)) {
    return [[], Object.keys(value).map((key) => pair(key, [{ texts: ["", "null"], form: "any", encoded: "" }]))];
  }
  return [[]];
}

function explodedPairs(name: string, value: unknown, rules: DataRules): readonly (readonly Pair[])[] {
  if (Array.isArray(value)) {
    const flat = value.filter((item) => item !== undefined).map((item) => scalarPair(name, item, rules));
    return value.every(isScalar)
      ? [flat]
      : [flat, ...nestedForms((listForm) => nestedPairs(name, value, listForm, rules))];
  }
  if (!isObject(value)) return [[scalarPair(name, value, rules)]];
  const entries = entriesOf(value);
  const flat = entries.map(([key, item]) => scalarPair(key, item, rules));
  if (entries.every(([, item]) => isScalar(item))) return [flat];
  // A list has a pair for each item, and a structure is one text: no value is lost (Appendix C).
  const repeated = entries.flatMap(([key, item]) =>
    (Array.isArray(item) ? item : [item]).map((each) => scalarPair(key, each, rules))
  );
  return [
    flat,
    repeated,
    ...nestedForms((listForm) => entries.flatMap(([key, item]) => nestedPairs(key, item, listForm, rules))),
  ];
}

const SEPARATORS: Readonly<Record<string, string>> = { csv: ",", ssv: " ", tsv: "\t", pipes: "|" };

/** 2.0 does not say how delimiters or values are encoded, so both forms of a delimiter are right. */
export function joinCollection(value: unknown, holder: unknown, encoded = ""): Spellings {
  const rules: DataRules = { encoded, isReservedAllowed: false };
  if (!Array.isArray(value)) return [[dataPiece(value, rules)]];
  const format = textMember(holder, "collectionFormat") ?? "csv";
  const separator = [delimiter(SEPARATORS[format] ?? ",", "any")];
  const items: readonly unknown[] = value.filter((item) => item !== undefined);
  // Items may be lists themselves, with a format of their own (Items Object).
  return withAndWithoutNull(items, (item) => item === null).map((kept) =>
    joinPieces(kept.map((item) => joinCollection(item, member(holder, "items"), encoded)[0] ?? []), separator)
  );
}

/** Pairs of a 2.0 parameter in a query or form. */
export function collectionPairs(name: string, value: unknown, holder: ObjectValue): readonly (readonly Pair[])[] {
  if (value === undefined) return [[]];
  if (isUndefined(value)) return undefinedPairs(name, value);
  if (Array.isArray(value) && textMember(holder, "collectionFormat") === "multi") {
    return [
      value.filter((item) => item !== undefined).map((item) =>
        pair(name, joinCollection(item, member(holder, "items"))[0] ?? [], item === null)
      ),
    ];
  }
  return joinCollection(value, holder).map((pieces) => [pair(name, pieces)]);
}

/** All ways to write a path parameter of 3.x. */
export function pathSpellings(name: string, value: unknown, style: Style): Spellings {
  const base: DataRules = { encoded: "/?#", isReservedAllowed: style.isReservedAllowed };
  const inList = (delimiters: string): DataRules =>
    style.isReservedAllowed ? base : { ...base, encoded: `/?#${delimiters}` };
  const raw = (text: string): readonly Piece[] => [delimiter(text, "raw")];
  const nameTexts: readonly Piece[] = [dataPiece(name, { encoded: "/?#;=", isReservedAllowed: false })];

  switch (style.name) {
    case "label": {
      // The table has `.` for undefined values, RFC 6570 has nothing.
      if (isUndefined(value)) return [raw("."), []];
      // `.` is unreserved, so RFC 6570 does not encode it inside of values.
      const separator = raw(style.isExploded ? "." : ",");
      const assign = raw(style.isExploded ? "=" : ",");
      return joinValue(value, separator, assign, inList(style.isExploded ? "=" : ","), base.encoded).map((
        one,
      ) => [...raw("."), ...one]);
    }
    case "matrix": {
      const named = [...raw(";"), ...nameTexts];
      // As for labels: the table against RFC 6570.
      if (isUndefined(value)) return [named, []];
      // An empty text has no `=` with the operator `;` of RFC 6570.
      const assigned = (key: readonly Piece[], item: unknown, rules: DataRules): readonly Piece[] =>
        item === "" ? [...raw(";"), ...key] : [...raw(";"), ...key, ...raw("="), dataPiece(item, rules)];
      if (isScalar(value)) return [assigned(nameTexts, value, base)];
      if (!style.isExploded) {
        return joinValue(value, raw(","), raw(","), inList(";,")).map((one) => [...named, ...raw("="), ...one]);
      }
      const entries: readonly (readonly [readonly Piece[], unknown])[] = Array.isArray(value)
        ? value.filter((item) => item !== undefined).map((item) => [nameTexts, item] as const)
        : isObject(value)
        ? entriesOf(value).map(([key, item]) => [[dataPiece(key, inList(";="))], item] as const)
        : [];
      return withAndWithoutNull(entries, ([, item]) => item === null).map((kept) =>
        kept.flatMap(([key, item]) => assigned(key, item, inList(";=")))
      );
    }
    default:
      if (isUndefined(value)) return [[]];
      return joinValue(
        value,
        raw(","),
        raw(style.isExploded ? "=" : ","),
        inList(style.isExploded ? ",=" : ","),
        base.encoded,
      );
  }
}

/** All ways to write a header of 3.x. White space after a comma has no meaning in HTTP. */
export function headerSpellings(value: unknown, isExploded: boolean): Spellings {
  const comma: readonly Piece[] = [{ texts: [",", ", "], form: "any", encoded: "" }];
  return joinValue(value, comma, isExploded ? [delimiter("=", "any")] : comma, {
    encoded: "",
    isReservedAllowed: false,
  });
}

/** All ways to write a cookie. */
export function cookiePairs(
  name: string,
  value: unknown,
  style: Style,
  version: Version,
): readonly (readonly Pair[])[] {
  if (isUndefined(value)) return [[]];
  if (style.name === "cookie") {
    const rules: DataRules = { encoded: "", isReservedAllowed: false };
    if (style.isExploded || isScalar(value)) return explodedPairs(name, value, rules);
    const comma = [delimiter(",", "raw")];
    return joinValue(value, comma, comma, rules).map((pieces) => [pair(name, pieces)]);
  }
  // Characters that cannot be in a cookie must be encoded. Before 3.2 it is "implementation-defined" what is right for
  // cookies (Appendix D), so nothing is demanded there.
  const encoded = isAtLeast(version, "3.2") && !style.isReservedAllowed ? ' ",;\\' : "";
  const rules: DataRules = { encoded, isReservedAllowed: style.isReservedAllowed };
  if (isScalar(value)) return [[scalarPair(name, value, rules)]];
  if (!style.isExploded) {
    const comma = [delimiter(",", isAtLeast(version, "3.2") ? "raw" : "any")];
    return joinValue(value, comma, comma, rules).map((pieces) => [pair(name, pieces)]);
  }
  // Exploded values: `&` is what the style says, `; ` is what cookies need (Appendix D, "Percent-Encoding and Cookies").
  const alternatives = explodedPairs(name, value, rules);
  const joined = alternatives.flatMap((pairs) => {
    const [first, ...others] = pairs;
    if (first === undefined || others.length === 0) return [];
    const rest = others.flatMap((one) => [
      delimiter("&", "raw"),
      dataPiece(one.name, rules),
      delimiter("=", "raw"),
      ...one.value,
    ]);
    return [[pair(first.name, [...first.value, ...rest])]];
  });
  return [...alternatives, ...joined];
}

/** The text of a value in a media type: JSON, or text as it is. */
export function contentPieces(
  mediaType: string,
  value: unknown,
  encoded: string,
  pairsOf: FormPairs,
): readonly Piece[] {
  if (isJsonType(mediaType)) return [jsonPiece(value, encoded)];
  if (mediaType === "application/x-www-form-urlencoded" && isObject(value)) {
    return [{ check: (text) => pairsOf(text), shown: "a form-encoded text", encoded }];
  }
  if (isScalar(value)) return [{ texts: scalarTexts(value), form: "any", encoded }];
  // There is no rule that turns a structure into other media types: no part of it may be lost.
  return [{
    check: (text) => isJsonOf(text, value) || holdsLeaves(text, value),
    shown: JSON.stringify(value),
    encoded,
  }];
}

/** Decides whether a text is the form that a value must be written as. */
export type FormPairs = (text: string) => boolean;

export function isJsonType(mediaType: string): boolean {
  const essence = mediaType.split(";")[0]?.trim().toLowerCase() ?? "";
  return essence === "application/json" || essence === "text/json" || essence.endsWith("+json");
}

/** The only entry of `content` as "MUST only contain one entry"; with more, each of them is right. */
export function contentEntries(holder: ObjectValue): readonly (readonly [string, unknown])[] {
  const content = member(holder, "content");
  return isObject(content) ? Object.entries(content) : [];
}

export function hasAny(holder: unknown, names: readonly string[]): boolean {
  return names.some((name) => member(holder, name) !== undefined);
}
