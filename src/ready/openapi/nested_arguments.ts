/**
 * Hides members of arguments, such as a member of a body whose value the author has fixed. In the schema of a tool, such
 * a member becomes an argument of its own, such as `body.options.tenant`, which `transform` hides and sets.
 */
import { isObject, readAt } from "../../core/kit/json.ts";
import { findSuggestion } from "../../core/kit/suggestions.ts";
import { show } from "../../core/known_options.ts";
import { followRef, listParts, PARTS } from "../../core/schema/walker.ts";
import { type JsonSchema, ToolError } from "../../library.ts";
import type { Arguments } from "../tool_input.ts";
import type { Scheme } from "./credentials.ts";
import { PartError } from "./document.ts";
import { areSameNames, foldName } from "./taken_names.ts";

/** Maximum number of schemas to copy. The number of ways to a schema can double on each level. */
const MAX_COPIES = 1000;

/** A member of an argument: `["body", "options", "tenant"]`. */
export type MemberPath = readonly string[];

/** The members that clients neither see nor set. */
export interface NestedMembers {
  /** The members whose values are arguments of their own, by the name of this argument. */
  readonly fixed: ReadonlyMap<string, MemberPath>;
  /** The members that a security scheme sends in another place. */
  readonly sent: readonly MemberPath[];
}

export interface NestedSchema extends NestedMembers {
  readonly schema: JsonSchema;
}

interface Wanted {
  /**
   * The changes of arguments. A name such as `body.tenant` stands for a member, unless an argument has it.
   */
  readonly changes: Readonly<Record<string, object>>;
  /** Names of the arguments that are optional fields of the body. `undefined` if the body is one argument. */
  readonly optionalFields?: readonly string[];
  readonly schemes: readonly Scheme[];
  /** Id of the operation, for errors. */
  readonly id: string;
}

/**
 * Moves members with fixed values to the root of a schema of arguments, and removes the members that security schemes
 * send.
 *
 * @throws {TypeError} if the arguments do not have a member.
 * @throws {PartError} if the schema of a member has too many parts.
 */
export function nestArguments(root: JsonSchema, { changes, optionalFields, schemes, id }: Wanted): NestedSchema {
  const properties = Object(root.properties);
  const nested = Object.keys(changes).filter((name) => name.includes(".") && !Object.hasOwn(properties, name));
  const odd = nested.find((name) => !Object.hasOwn(changes[name], "value"));
  if (odd !== undefined) {
    throw new TypeError(
      `Cannot make an API: transform of ${id} changes ${show(odd)} without a value; fix it with value, or change the ` +
        "whole argument",
    );
  }
  const fixed = new Map(nested.map((name) => [name, name.split(".")]));
  const members = optionalFields
    ? listMembers(root, root).filter(([name]) => optionalFields.includes(name))
    : listMembers(root, properties.body);
  const sent = members.filter(([name, member]) => schemes.some((scheme) => isSent(name, member, scheme)))
    .map(([name]) => optionalFields ? [name] : ["body", name]);
  let schema = root;
  for (const [name, path] of fixed) {
    const { changed, removed } = remove(toRemoval(schema, path), schema, path);
    if (!removed) throw toUnknown(root, { id, name, path });
    schema = {
      ...changed,
      properties: { ...Object(changed.properties), [name]: removed.length > 1 ? { anyOf: removed } : removed[0] ?? {} },
    };
  }
  for (const path of sent) schema = remove(toRemoval(schema, path), schema, path).changed;
  return { schema, fixed, sent };
}

/**
 * Whether a security scheme sends an optional member of a body. Some APIs take a key in a header or in the body, and
 * their documents say so at the member.
 */
function isSent(name: string, { schema, isRequired }: Member, { place, key }: Scheme): boolean {
  if (isRequired || place !== "header" || foldName(key) === "authorization") return false;
  if (foldName(key) === foldName(name)) return true;
  // A plain word, such as `token`, occurs in descriptions by chance.
  if (!/[-_]/.test(key)) return false;
  const { description } = Object(schema);
  return typeof description === "string" && description.toLowerCase().includes(key.toLowerCase());
}

interface Member {
  readonly schema: unknown;
  readonly isRequired: boolean;
}

/** Lists the members of an object, in all parts of its schema. */
function listMembers(root: JsonSchema, given: unknown): readonly (readonly [name: string, member: Member])[] {
  const parts = listParts(root, given);
  const required = new Set(parts.flatMap((part) => Array.isArray(part.required) ? part.required : []));
  return parts.flatMap(({ properties }) =>
    Object.entries(Object(properties)).map(([name, schema]) =>
      [name, { schema, isRequired: required.has(name) }] as const
    )
  );
}

interface Removed {
  readonly changed: JsonSchema;
  /** The schemas of the removed member. Empty if its object does not list its members. `undefined` if there is none. */
  readonly removed?: readonly unknown[];
}

/** A removal of a member, which counts the copies of schemas. */
interface Removal {
  readonly root: JsonSchema;
  readonly member: string;
  copies: number;
}

function toRemoval(root: JsonSchema, path: MemberPath): Removal {
  return { root, member: path.join("."), copies: 0 };
}

/** Copies the definitions on the path to the place where they are used, because other schemas share them. */
function remove(
  removal: Removal,
  schema: JsonSchema,
  path: MemberPath,
  seen: ReadonlySet<string> = new Set(),
): Removed {
  if (removal.copies++ >= MAX_COPIES) {
    throw new PartError(`the schema of its argument ${show(removal.member)} has more than ${MAX_COPIES} parts`);
  }
  const { $ref, ...own } = schema;
  if (typeof $ref === "string" && !seen.has($ref)) {
    const target = followRef(removal.root, $ref);
    const found = isObject(target) ? remove(removal, target, path, new Set([...seen, $ref])) : undefined;
    if (!found?.removed) return { changed: schema };
    const beside = remove(removal, own, path, seen);
    return { changed: { ...found.changed, ...beside.changed }, removed: [...found.removed, ...beside.removed ?? []] };
  }
  const [name, ...rest] = path;
  const removed: unknown[] = [];
  let isFound = false;
  const changed: Record<string, unknown> = { ...schema };
  const member: unknown = readAt(schema.properties, [name]);
  if (member !== undefined && !rest.length) {
    const { [name]: _, ...others } = Object(schema.properties);
    changed.properties = others;
    removed.push(member);
    isFound = true;
  } else if (isObject(member)) {
    const inner = remove(removal, member, rest);
    if (inner.removed) {
      changed.properties = { ...Object(schema.properties), [name]: inner.changed };
      removed.push(...inner.removed);
      isFound = true;
    }
  } else {
    // The members of an object without properties are not known.
    const isObjectType = schema.type === undefined || [schema.type].flat().includes("object");
    isFound = isObjectType && ["properties", ...PARTS].every((key) => schema[key] === undefined);
  }
  if (!rest.length && Array.isArray(schema.required)) {
    changed.required = schema.required.filter((each) => each !== name);
  }
  for (const key of PARTS) {
    const parts: unknown = schema[key];
    if (!Array.isArray(parts)) continue;
    changed[key] = parts.map((part: unknown) => {
      const inner = isObject(part) ? remove(removal, part, path, seen) : undefined;
      if (!inner?.removed) return part;
      removed.push(...inner.removed);
      isFound = true;
      return inner.changed;
    });
  }
  return { changed, removed: isFound ? removed : undefined };
}

function toUnknown(
  root: JsonSchema,
  { id, name, path }: { readonly id: string; readonly name: string; readonly path: MemberPath },
): TypeError {
  const at = path.slice(0, -1).reduce<unknown>(
    (schema, key) => listMembers(root, schema).find(([each]) => each === key)?.[1].schema,
    root,
  );
  const known = listMembers(root, at).map(([each]) => [...path.slice(0, -1), each].join("."));
  const meant = findSuggestion(name, known);
  const remedy = meant === undefined ? "use a path such as body.options.tenant" : `did you mean ${meant}?`;
  return new TypeError(
    `Cannot make an API: transform of ${id} changes ${show(name)}, which the operation does not have; ${remedy}`,
  );
}

/**
 * Moves the values of fixed members into their arguments.
 *
 * @throws {ToolError} if an argument of a client has a member that a server could read as a member which it cannot set.
 */
export function placeNested(given: Arguments, { fixed, sent }: NestedMembers): Arguments {
  if (!fixed.size && !sent.length) return given;
  for (const path of sent) refuseMember(given, path);
  const args: Record<string, unknown> = { ...given };
  for (const [name, path] of fixed) {
    const value = args[name];
    delete args[name];
    refuseMember(args, path);
    setMember(args, path, { value, path });
  }
  return args;
}

function refuseMember(args: Arguments, [argument, ...rest]: MemberPath): void {
  let at: unknown = args[argument];
  if (!rest.length && at !== undefined) throw toOwnMember(argument);
  for (const [i, name] of rest.entries()) {
    if (!isObject(at)) return;
    const isLast = i === rest.length - 1;
    // Compare as for forms and queries, whose servers read brackets and dots in the names of members.
    const odd = Object.keys(at).find((each) => (each !== name || isLast) && areSameNames(each, name));
    if (odd !== undefined) {
      throw toOwnMember([argument, ...rest.slice(0, i), odd].join("."));
    }
    at = at[name];
  }
}

function toOwnMember(shown: string): ToolError {
  return new ToolError(`Cannot send the request: the server sets ${shown} itself; remove it`);
}

/** Sets a member in an object. Copies the objects on the path, because they belong to the client's arguments. */
function setMember(
  target: Record<string, unknown>,
  [name, ...rest]: MemberPath,
  given: { readonly value: unknown; readonly path: MemberPath },
): void {
  if (!rest.length) {
    target[name] = given.value;
    return;
  }
  const inner = target[name] ?? {};
  if (!isObject(inner)) {
    const at = given.path.slice(0, -rest.length).join(".");
    throw new ToolError(`Cannot send the request: ${at} is not an object; send an object`);
  }
  const copy = { ...inner };
  setMember(copy, rest, given);
  target[name] = copy;
}
