/**
 * The types of form controls.
 */
import type { Json } from "./json.ts";
import type { Shape } from "./schema_reader.ts";

/** What a control returns when its value is read. */
export interface Reading {
  /** The current value, even if part of the value is missing or invalid. `undefined` if there is no value to send. */
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
  /** Reads the value. If the value has a problem, shows the problem next to the control. */
  read(): Reading;
}

export interface FormContext {
  /** The schema that contains the targets of references. */
  readonly root: Json;
  /**
   * The number of fields that the form may still create, because a schema can describe more fields than a page can
   * show.
   */
  readonly budget: { fields: number };
  /** Whether the title of a field comes before its name, as for users. */
  readonly isTitleFirst: boolean;
  makeControl(shape: Shape, place: Place): Field;
  makeFields(schema: Json, place: FieldsPlace): Field;
}

export interface Place {
  readonly context: FormContext;
  /** The element ID to which the label refers. */
  readonly id: string;
  readonly name: string;
  readonly isRequired: boolean;
  /** The initial value. `undefined` if the control starts empty. */
  readonly initial: unknown;
  /** Attributes that connect the control with its label and description. */
  readonly about: Readonly<Record<string, string>>;
  /** The number of objects and lists that contain the control. */
  readonly depth: number;
  /** Properties of the value that have no field, such as the constant that identifies a variant. */
  readonly fixed?: Json;
}

export interface FieldsPlace extends Pick<Place, "context" | "depth" | "fixed"> {
  /** The initial value of the object. */
  readonly given: Json;
}

/** Reads a removed object or an empty control. Returns a problem if the value is required and cannot be null. */
export function readEmpty({ isNullable }: Shape, { isRequired }: Place, focus: HTMLElement): Reading {
  if (!isRequired) return {};
  return isNullable ? { value: null } : { problem: { text: "Fill this in.", focus } };
}
