/**
 * The tokens of arguments and of members of structured content that layers add to tools.
 */
import type { JsonSchema } from "../../core/schema/json_schema.ts";
import type { Checked, Schema } from "../../core/schema/schema.ts";
import type { Typed } from "../../core/typed.ts";
import type { INTERNALS } from "../../core/internals.ts";
import type { Call } from "../call/call.ts";

/**
 * An argument that a layer adds to tools, created by `argument()`. The steps of the layer read its value with
 * `given(token)`. `T` is the type of the value.
 */
export interface Argument<T = unknown> extends Typed<T> {
  /** Name of the argument. */
  readonly name: string;
  /**
   * Internal state that the tool uses.
   *
   * @ignore
   */
  readonly [INTERNALS]: AddedInternals;
}

/**
 * A member of structured content that a layer adds to the results of tools, created by `member()`. The step `result` of
 * the layer sets it with `set(token, value)`. `T` is the type of the value.
 */
export interface Member<T = unknown> extends Typed<T> {
  /** Name of the member. */
  readonly name: string;
  /**
   * Internal state that the tool uses.
   *
   * @ignore
   */
  readonly [INTERNALS]: AddedInternals;
}

/**
 * Internal state of a token. Only the functions that create tokens refer to the code that adds them, so that a server
 * without tokens does not contain the code.
 *
 * @internal
 */
export interface AddedInternals {
  readonly kind: "argument" | "member";
  readonly value: {
    /** Returns the schema of an object whose only property is the value. */
    json(): JsonSchema;
    /** Validates a value. */
    check(value: unknown): Checked | Promise<Checked>;
  };
  /** Whether an argument is required: in calls and in the list, in the list only, or not. */
  readonly required?: boolean | "listed";
  /** Adds the tokens of all layers of a tool to its schemas. */
  add(about: AddingTo): AddedParts;
}

/** A token, and the name of the layer that adds it. */
export interface Token {
  readonly token: Argument | Member;
  readonly layer: string;
}

/** The tool to which layers add arguments and members. */
export interface AddingTo {
  /** Kind and name of the tool. */
  readonly place: string;
  readonly arguments: readonly Token[];
  readonly members: readonly Token[];
  readonly input?: Schema;
  readonly output?: Schema;
  /** Whether another server describes the tool, which then keeps an argument or a member of its own. */
  readonly isForeign: boolean;
}

/** The schemas of a tool with the arguments and members of its layers. */
export interface AddedParts {
  readonly input?: Schema;
  readonly output?: Schema;
  /** The tokens that the schemas do not contain, each with the reason. */
  readonly absent: ReadonlyMap<Argument | Member, string>;
  /** Takes the added arguments out of the arguments of a call. `undefined` if there are no added arguments. */
  open?(call: Call): Promise<void> | undefined;
}
