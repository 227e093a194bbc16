/**
 * Controls for single values.
 *
 * @module
 */
import type { Dom, Element, UiEvent } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { SchemaReader, Shape } from "./schema_reader.ts";

/** The value of a control. There is no `value` if nothing is to be sent. */
export type Reading = { readonly value?: unknown } | {
  readonly problem: string;
  readonly focus: Element;
  /** Whether an inner field already shows the problem. */
  readonly isShown?: boolean;
};

/** A control, with or without its label. */
export interface Field {
  readonly element: Element;
  /** The element to focus if there is a problem. Defaults to `element`. */
  readonly focus?: Element;
  /** Whether it consists of several labelled controls. */
  readonly isGroup?: boolean;
  read(): Reading;
  /** The value so far, even if a part is missing or invalid; `undefined` if there is none. */
  readonly readPartial?: () => unknown;
}

/** The number of fields a form may still build, because a schema can describe more than a page can show. */
export interface Budget {
  fields: number;
}

/** The context of a control. */
export interface Place {
  /** The element ID, for the label. */
  readonly id: string;
  readonly name: string;
  readonly isRequired: boolean;
  /** The initial value, if there is one. */
  readonly initial: unknown;
  /** The schema with the definitions that references name. */
  readonly root: Json;
  /** Attributes that label and describe the control. */
  readonly about: Readonly<Record<string, string>>;
  /** The number of objects and lists around it. */
  readonly depth: number;
  readonly budget: Budget;
}

/** Makes a control. */
export type MakeControl = (shape: Shape, place: Place) => Field;

/** Makes a compound control. Returns `undefined` if it would be too deep or too large. */
export type MakeCompound = (shape: Shape, place: Place) => Field | undefined;

/** Dependencies. */
export interface ValueControlParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly schemas: SchemaReader;
  /** Makes objects, lists and unions. */
  readonly makeCompound: MakeCompound;
}

/** Creates the factory. */
export function createValueControls({ dom, json, schemas, makeCompound }: ValueControlParts): MakeControl {
  const { h, serverText, escapeInvisible } = dom;
  const { text, parse, pretty, compact } = json;
  const maxHintCharacters = 300; // characters of a placeholder

  const makers: Readonly<Partial<Record<Shape["kind"], MakeControl>>> = {
    text: toText,
    number: toNumber,
    boolean: toBoolean,
    choice: toChoice,
    choices: toChoices,
    json: toJson,
  };

  function toControl(shape: Shape, place: Place): Field {
    const field = toUnchecked(shape, place);

    function read(): Reading {
      const reading = field.read();
      if (!("value" in reading)) return reading;
      const problem = schemas.findProblem(reading.value, shape.schema);
      return problem === undefined ? reading : { problem, focus: field.focus ?? field.element };
    }

    function readPartial(): unknown {
      const reading = field.read();
      return "value" in reading ? reading.value : field.readPartial?.();
    }

    return { ...field, read, readPartial };
  }

  function toUnchecked(shape: Shape, place: Place): Field {
    const make = makers[shape.kind];
    return make ? make(shape, place) : makeCompound(shape, place) ?? toJson(shape, place);
  }

  /** The value of an empty control. */
  function readEmpty({ isNullable }: Shape, { isRequired }: Place, focus: Element): Reading {
    if (!isRequired) return {};
    return isNullable ? { value: null } : { problem: "Fill this in.", focus };
  }

  function toText(shape: Shape, place: Place): Field {
    const { format, examples } = shape.schema;
    const types: Json = { date: "date", email: "email", uri: "url", "date-time": "datetime-local" };
    const type = text(types[String(format)]);
    const [example] = Array.isArray(examples) ? examples : [];
    const placeholder = typeof example === "string" ? escapeInvisible(example.slice(0, maxHintCharacters)) : undefined;
    const attributes = { id: place.id, placeholder, autocomplete: "off", spellcheck: "false", ...place.about };
    const isMoment = type === "datetime-local";
    const element = type
      ? h("input", { type, step: isMoment && 1, ...attributes })
      : h("textarea", { rows: 1, ...attributes, keydown: sendOnEnter });
    const initial = typeof place.initial === "string" ? place.initial : "";
    element.value = isMoment ? toLocal(initial) : initial;

    function read(): Reading {
      const { value } = element;
      if (isMoment && value) return { value: new Date(value).toISOString() };
      // Empty text is a value, an empty date is not.
      const isText = value !== "" || (!type && place.isRequired && !shape.isNullable);
      return isText ? { value } : readEmpty(shape, place, element);
    }

    return { element, read };
  }

  function sendOnEnter(event: UiEvent): void {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form?.requestSubmit();
  }

  /** Converts a timestamp to local time without a time zone, which the control needs. */
  function toLocal(moment: string): string {
    const date = new Date(moment);
    if (Number.isNaN(date.getTime())) return "";
    return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  }

  function toNumber(shape: Shape, place: Place): Field {
    const { minimum: min, maximum: max, type } = shape.schema;
    const bound = (value: unknown) => typeof value === "number" ? value : undefined;
    const step = type === "integer" ? 1 : "any";
    const element = h("input", {
      id: place.id,
      type: "number",
      step,
      min: bound(min),
      max: bound(max),
      ...place.about,
    });
    element.value = typeof place.initial === "number" ? String(place.initial) : "";

    function read(): Reading {
      if (element.validity.badInput) return { problem: "Enter a number.", focus: element };
      return element.value === "" ? readEmpty(shape, place, element) : { value: Number(element.value) };
    }

    return { element, read };
  }

  // An optional boolean has three states, and a checkbox only two that the user can select.
  function toBoolean(shape: Shape, place: Place): Field {
    if (!shape.isNullable && (place.isRequired || typeof place.initial === "boolean")) {
      const element = h("input", { id: place.id, type: "checkbox", ...place.about });
      element.checked = place.initial === true;
      return { element, read: () => ({ value: element.checked }) };
    }
    const choices = [true, false].map((value) => ({ value, title: String(value) }));
    return toChoice({ ...shape, choices }, place);
  }

  function toChoice(shape: Shape, place: Place): Field {
    const { isRequired, initial } = place;
    const choices = shape.isNullable ? [...shape.choices, { value: null, title: "null" }] : shape.choices;
    const none = h("option", { value: "" }, isRequired ? "Choose …" : "Not sent");
    const options = choices.map(({ title }, at) => h("option", { value: at }, escapeInvisible(title)));
    const isOnly = isRequired && choices.length === 1;
    const element = h("select", { id: place.id, ...place.about }, !isOnly && none, ...options);
    const same = compact(initial);
    const at = choices.findIndex(({ value }) => compact(value) === same);
    element.value = isOnly ? "0" : initial === undefined || at < 0 ? "" : String(at);

    function read(): Reading {
      if (element.value !== "") return { value: choices[Number(element.value)].value };
      return isRequired ? { problem: "Choose one.", focus: element } : {};
    }

    return { element, read };
  }

  function toChoices({ choices }: Shape, { isRequired, initial }: Place): Field {
    const chosen = new Set((Array.isArray(initial) ? initial : []).map(compact));
    const boxes = choices.map(({ value }) => {
      const box = h("input", { type: "checkbox" });
      box.checked = chosen.has(compact(value));
      return box;
    });
    const element = h("div.boxes", {}, ...choices.map(({ title }, at) => h("label", {}, boxes[at], serverText(title))));

    function read(): Reading {
      const value = choices.filter((_, at) => boxes[at].checked).map((choice) => choice.value);
      return value.length || isRequired ? { value } : {};
    }

    return { element, read, isGroup: true, focus: boxes[0] };
  }

  function toJson(shape: Shape, place: Place): Field {
    const { id, isRequired, initial, root, about } = place;
    const skeleton = pretty(schemas.toSkeleton(shape.schema, root));
    const placeholder = isRequired ? undefined : escapeInvisible(skeleton.slice(0, maxHintCharacters));
    const element = h("textarea.code", { id, rows: 1, placeholder, spellcheck: "false", ...about });
    if (initial !== undefined) element.value = pretty(initial);
    else if (isRequired && !shape.isNullable) element.value = skeleton;

    function read(): Reading {
      if (!element.value.trim()) return readEmpty(shape, place, element);
      const parsed = parse(element.value);
      return "problem" in parsed ? { ...parsed, focus: element } : parsed;
    }

    return { element, read };
  }

  return toControl;
}
