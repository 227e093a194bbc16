/**
 * The types of the controls of a form.
 *
 * @module
 */
import type { Json } from "./json.ts";
import type { Shape } from "./schema_reader.ts";

/** The value of a control. */
export interface Reading {
  /** The current value, even if a part of it is missing or invalid. `undefined` if there is no value to send. */
  readonly value?: unknown;
  readonly problem?: Problem;
}

/** The reason why a value cannot be sent. */
export interface Problem {
  readonly text: string;
  readonly focus: HTMLElement;
  /** Whether an inner field already shows the problem. */
  readonly isShown?: boolean;
}

/** A control, with or without its label. */
export interface Field {
  readonly element: HTMLElement;
  /** The element to focus if there is a problem. Defaults to `element`. */
  readonly focus?: HTMLElement;
  /** Whether the control consists of several labelled controls. */
  readonly isGroup?: boolean;
  /** Reads the value, and shows its problems. */
  read(): Reading;
}

/** The context that the controls of a form have in common. */
export interface FormContext {
  /** The schema with the definitions that references point to. */
  readonly root: Json;
  /** The number of fields that may still be created, because a schema can describe more fields than a page can show. */
  readonly budget: { fields: number };
  /** Creates the control for a value. */
  makeControl(shape: Shape, place: Place): Field;
  /** Creates a field for every property of an object. */
  makeFields(schema: Json, place: FieldsPlace): Field;
}

/** Where a control belongs: its element ID, its initial value and its nesting depth. */
export interface Place {
  readonly context: FormContext;
  /** The element ID, for the label. */
  readonly id: string;
  readonly name: string;
  readonly isRequired: boolean;
  /** The initial value. `undefined` if the control starts empty. */
  readonly initial: unknown;
  /** Attributes that connect the control with its label and its description. */
  readonly about: Readonly<Record<string, string>>;
  /** The number of objects and lists around the control. */
  readonly depth: number;
  /** Properties of the value that need no field. */
  readonly fixed?: Json;
}

/** The place of the fields of an object. */
export interface FieldsPlace {
  readonly context: FormContext;
  /** The initial value. */
  readonly given: Json;
  readonly depth: number;
  /** Properties that need no field. */
  readonly fixed?: Json;
}

/** Returns the reading of an absent object or of an empty control. */
export function readEmpty({ isNullable }: Shape, { isRequired }: Place, focus: HTMLElement): Reading {
  if (!isRequired) return {};
  return isNullable ? { value: null } : { problem: { text: "Fill this in.", focus } };
}
