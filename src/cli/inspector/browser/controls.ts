/**
 * Controls for single values.
 *
 * @module
 */
import type { Dom, Element, UiEvent } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";
import type { SchemaReader, Shape } from "./schema.ts";

/** What a user has filled in. There is no `value` if nothing is to be sent. */
export type Reading = { readonly value?: unknown } | { readonly problem: string; readonly focus: Element };

/** A control, or one with its label. */
export interface Field {
  readonly element: Element;
  read(): Reading;
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
}

/** Makes a control. */
export type MakeControl = (shape: Shape, place: Place) => Field;

/** What controls are built with. */
export interface ControlParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly schemas: SchemaReader;
}

/** Makes the maker of controls. */
export function createControls({ dom: { h, say, visible, newId }, json, schemas }: ControlParts): MakeControl {
  const { text, parse, pretty } = json;
  const controls = "input, textarea, select";

  function toControl(shape: Shape, place: Place): Field {
    const kinds = { text: toText, number: toNumber, boolean: toBoolean, choice: toChoice, choices: toChoices };
    return shape.kind === "list"
      ? toList(shape, place)
      : shape.kind === "json"
      ? toJson(shape, place)
      : kinds[shape.kind](shape, place);
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
    const placeholder = typeof example === "string" ? visible(example) : undefined;
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
    const same = JSON.stringify(initial);
    const at = choices.findIndex(({ value }) => JSON.stringify(value) === same);
    element.value = isOnly ? "0" : initial === undefined || at < 0 ? "" : String(at);

    function read(): Reading {
      if (element.value !== "") return { value: choices[Number(element.value)].value };
      return isRequired ? { problem: "Choose one.", focus: element } : {};
    }

    return { element, read };
  }

  function toChoices({ choices }: Shape, { isRequired, initial }: Place): Field {
    const chosen = new Set((Array.isArray(initial) ? initial : []).map((value) => JSON.stringify(value)));
    const boxes = choices.map(({ value }) => {
      const box = h("input", { type: "checkbox" });
      box.checked = chosen.has(JSON.stringify(value));
      return box;
    });
    const element = h("div.boxes", {}, ...choices.map(({ title }, at) => h("label", {}, boxes[at], say(title))));

    function read(): Reading {
      const value = choices.filter((_, at) => boxes[at].checked).map((choice) => choice.value);
      return value.length || isRequired ? { value } : {};
    }

    return { element, read };
  }

  function toList(shape: Shape, { name, isRequired, initial, root }: Place): Field {
    const item = schemas.toShape(shape.items, root);
    const list = h("ul.rows");
    const adder = h(
      "button.quiet.small",
      { type: "button", click: () => add().querySelector(controls)?.focus() },
      "Add an item",
    );
    const element = h("div", {}, list, adder);
    let rows: (readonly [Element, Field])[] = [];
    const least = isRequired && typeof shape.schema.minItems === "number" ? Math.min(shape.schema.minItems, 20) : 0;
    const start = Array.isArray(initial) ? initial : Array.from({ length: least });
    start.forEach(add);

    function add(value?: unknown): Element {
      const about = { "aria-label": visible(`${name}, item`) };
      const field = toControl(item, { id: newId(), name, isRequired: true, initial: value, root, about });
      const remove = h(
        "button.quiet.small",
        { type: "button", "aria-label": visible(`Remove this item of ${name}`) },
        "×",
      );
      const row = h("li", {}, field.element, remove);
      remove.addEventListener("click", () => {
        rows = rows.filter(([each]) => each !== row);
        row.remove();
        adder.focus();
      });
      rows.push([row, field]);
      list.append(row);
      return row;
    }

    function read(): Reading {
      const values: unknown[] = [];
      for (const [, field] of rows) {
        const reading = field.read();
        if ("problem" in reading) return reading;
        if ("value" in reading) values.push(reading.value);
      }
      return values.length || isRequired ? { value: values } : {};
    }

    return { element, read };
  }

  function toJson(shape: Shape, place: Place): Field {
    const { id, isRequired, initial, root, about } = place;
    const skeleton = pretty(schemas.toSkeleton(shape.schema, root));
    const placeholder = isRequired ? undefined : visible(skeleton);
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
