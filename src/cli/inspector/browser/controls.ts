/**
 * Controls for single values.
 *
 * @module
 */
import type { Dom, Element, UiEvent } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";
import type { SchemaReader, Shape } from "./schema.ts";

/** What a user has filled in. There is no `value` if nothing is to be sent. */
export type Reading = { readonly value?: unknown } | {
  readonly problem: string;
  readonly focus: Element;
  /** Whether a field inside shows the problem already. */
  readonly isShown?: boolean;
};

/** A control, or one with its label. */
export interface Field {
  readonly element: Element;
  /** What gets the focus if there is a problem; the element itself if it is one control. */
  readonly focus?: Element;
  /** Whether it consists of several controls, which have labels of their own. */
  readonly isGroup?: boolean;
  read(): Reading;
  /** What is filled in although something in it is missing or wrong; `undefined` if that is nothing. */
  readonly peek?: () => unknown;
}

/** How many fields a form may still build by itself: a schema can describe more than a browser can show. */
export interface Budget {
  fields: number;
}

/** Where a control stands. */
export interface Place {
  /** Of the control, for its label. */
  readonly id: string;
  readonly name: string;
  readonly isRequired: boolean;
  /** The value to begin with, if there is one. */
  readonly initial: unknown;
  /** Holds the definitions that references name. */
  readonly root: Json;
  /** Attributes that name and explain the control. */
  readonly about: Readonly<Record<string, string>>;
  /** How many objects and lists it stands in. */
  readonly depth: number;
  readonly budget: Budget;
}

/** Makes a control. */
export type MakeControl = (shape: Shape, place: Place) => Field;

/** Makes a control that holds others; `undefined` if it would be too deep or too large. */
export type MakeCompound = (shape: Shape, place: Place) => Field | undefined;

/** What controls are built with. */
export interface ControlParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly schemas: SchemaReader;
  /** Makes objects, lists and unions. */
  readonly makeCompound: MakeCompound;
}

/** Makes the maker of controls. */
export function createControls({ dom, json, schemas, makeCompound }: ControlParts): MakeControl {
  const { h, say, visible } = dom;
  const { text, parse, pretty, compact } = json;
  const longestHint = 300; // characters of an example or a skeleton in an empty control

  function toControl(shape: Shape, place: Place): Field {
    const field = toUnchecked(shape, place);

    function read(): Reading {
      const reading = field.read();
      if (!("value" in reading)) return reading;
      const problem = schemas.findProblem(reading.value, shape.schema);
      return problem === undefined ? reading : { problem, focus: field.focus ?? field.element };
    }

    function peek(): unknown {
      const reading = field.read();
      return "value" in reading ? reading.value : field.peek?.();
    }

    return { ...field, read, peek };
  }

  function toUnchecked(shape: Shape, place: Place): Field {
    switch (shape.kind) {
      case "text":
        return toText(shape, place);
      case "number":
        return toNumber(shape, place);
      case "boolean":
        return toBoolean(shape, place);
      case "choice":
        return toChoice(shape, place);
      case "choices":
        return toChoices(shape, place);
      case "json":
        return toJson(shape, place);
      default:
        return makeCompound(shape, place) ?? toJson(shape, place);
    }
  }

  /** What an empty control stands for. */
  function readEmpty({ isNullable }: Shape, { isRequired }: Place, focus: Element): Reading {
    if (!isRequired) return {};
    return isNullable ? { value: null } : { problem: "Fill this in.", focus };
  }

  function toText(shape: Shape, place: Place): Field {
    const { format, examples } = shape.schema;
    const types: Json = { date: "date", email: "email", uri: "url", "date-time": "datetime-local" };
    const type = text(types[String(format)]);
    const [example] = Array.isArray(examples) ? examples : [];
    const placeholder = typeof example === "string" ? visible(example.slice(0, longestHint)) : undefined;
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
      // An empty text is a text; an empty date is none.
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

  /** A moment as the control for it has it: in local time, without a zone. */
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
      if (element.validity.badInput) return { problem: "This is not a number.", focus: element };
      return element.value === "" ? readEmpty(shape, place, element) : { value: Number(element.value) };
    }

    return { element, read };
  }

  // What may be left out is a choice of three; a box has no third state that one could get back to.
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
    const options = choices.map(({ title }, at) => h("option", { value: at }, visible(title)));
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
    const element = h("div.boxes", {}, ...choices.map(({ title }, at) => h("label", {}, boxes[at], say(title))));

    function read(): Reading {
      const value = choices.filter((_, at) => boxes[at].checked).map((choice) => choice.value);
      return value.length || isRequired ? { value } : {};
    }

    return { element, read, isGroup: true, focus: boxes[0] };
  }

  function toJson(shape: Shape, place: Place): Field {
    const { id, isRequired, initial, root, about } = place;
    const skeleton = pretty(schemas.toSkeleton(shape.schema, root));
    const placeholder = isRequired ? undefined : visible(skeleton.slice(0, longestHint));
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
