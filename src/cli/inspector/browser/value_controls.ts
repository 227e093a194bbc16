/**
 * Controls for single values.
 */
import { escapeInvisible, h, serverText } from "./dom.ts";
import { type Field, type Place, readEmpty, type Reading } from "./form_field.ts";
import { parseJson, toCompact, toPretty } from "./json.ts";
import { type Shape, toSkeleton } from "./schema_reader.ts";

/** Maximum length of a placeholder, in characters. */
const MAX_PLACEHOLDER = 300;

/** The type of the input for each string format. */
const INPUT_TYPES: ReadonlyMap<unknown, string> = new Map([
  ["date", "date"],
  ["email", "email"],
  ["uri", "url"],
  ["date-time", "datetime-local"],
]);

/** Creates a control for a value that is neither an object, nor a list, nor a union. */
export function makeValueControl(shape: Shape, place: Place): Field {
  const makers: Readonly<Partial<Record<Shape["kind"], typeof makeJson>>> = {
    text: makeText,
    number: makeNumber,
    boolean: makeBoolean,
    choice: makeChoice,
    choices: makeChoices,
  };
  return (makers[shape.kind] ?? makeJson)(shape, place);
}

function makeText(shape: Shape, place: Place): Field {
  const { id, about, isRequired } = place;
  const { format, examples } = shape.schema;
  const type = INPUT_TYPES.get(format);
  const [example] = Array.isArray(examples) ? examples : [];
  const placeholder = typeof example === "string" ? escapeInvisible(example.slice(0, MAX_PLACEHOLDER)) : undefined;
  const attributes = { id, placeholder, autocomplete: "off", spellcheck: "false", ...about };
  const isMoment = type === "datetime-local";
  const element = type === undefined
    ? h("textarea", { rows: 1, ...attributes, keydown: sendOnEnter })
    : h("input", { type, step: isMoment && 1, ...attributes });
  const initial = typeof place.initial === "string" ? place.initial : "";
  element.value = isMoment ? toLocal(initial) : initial;

  function read(): Reading {
    const { value } = element;
    if (isMoment && value) return { value: new Date(value).toISOString() };
    // An empty string can be a value, but an empty date is not a value.
    const isText = value !== "" || (type === undefined && isRequired && !shape.isNullable);
    return isText ? { value } : readEmpty(shape, place, element);
  }

  return { element, read };
}

function sendOnEnter(event: KeyboardEvent): void {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (event.target instanceof HTMLTextAreaElement) event.target.form?.requestSubmit();
}

/** Converts a timestamp to local time without a time zone, which is the format that the input requires. */
function toLocal(moment: string): string {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function makeNumber(shape: Shape, place: Place): Field {
  const { minimum, maximum, type } = shape.schema;
  const toLimit = (value: unknown) => typeof value === "number" ? value : undefined;
  const element = h("input", {
    id: place.id,
    type: "number",
    step: type === "integer" ? 1 : "any",
    min: toLimit(minimum),
    max: toLimit(maximum),
    ...place.about,
  });
  element.value = typeof place.initial === "number" ? String(place.initial) : "";

  function read(): Reading {
    if (element.validity.badInput) return { problem: { text: "Enter a number.", focus: element } };
    return element.value === "" ? readEmpty(shape, place, element) : { value: Number(element.value) };
  }

  return { element, read };
}

// Creates a select for a boolean. Does not use a checkbox, because an optional boolean has three states.
function makeBoolean(shape: Shape, place: Place): Field {
  const { id, about, initial, isRequired } = place;
  if (!shape.isNullable && (isRequired || typeof initial === "boolean")) {
    const element = h("input", { id, type: "checkbox", ...about });
    element.checked = initial === true;
    return { element, read: () => ({ value: element.checked }) };
  }
  const choices = [true, false].map((value) => ({ value, title: String(value) }));
  return makeChoice({ ...shape, choices }, place);
}

function makeChoice(shape: Shape, { id, about, isRequired, initial }: Place): Field {
  const choices = shape.isNullable ? [...shape.choices, { value: null, title: "null" }] : shape.choices;
  const isOnly = isRequired && choices.length === 1;
  const none = h("option", { value: "" }, isRequired ? "Choose …" : "Not sent");
  const options = choices.map(({ title }, at) => h("option", { value: at }, escapeInvisible(title)));
  const element = h("select", { id, ...about }, !isOnly && none, ...options);
  const at = initial === undefined ? -1 : choices.findIndex(({ value }) => toCompact(value) === toCompact(initial));
  element.value = isOnly ? "0" : at < 0 ? "" : String(at);

  function read(): Reading {
    if (element.value !== "") return { value: choices[Number(element.value)].value };
    return isRequired ? { problem: { text: "Choose one.", focus: element } } : {};
  }

  return { element, read };
}

function makeChoices({ choices }: Shape, { isRequired, initial }: Place): Field {
  const chosen = new Set((Array.isArray(initial) ? initial : []).map(toCompact));
  const boxes = choices.map(({ value }) => h("input", { type: "checkbox", checked: chosen.has(toCompact(value)) }));
  const element = h("div.boxes", ...choices.map(({ title }, at) => h("label", boxes[at], serverText(title))));

  function read(): Reading {
    const value = choices.filter((_, at) => boxes[at].checked).map((choice) => choice.value);
    return value.length || isRequired ? { value } : {};
  }

  return { element, read, isGroup: true, focus: boxes[0] };
}

function makeJson(shape: Shape, place: Place): Field {
  const { id, isRequired, initial, context, about } = place;
  const skeleton = toPretty(toSkeleton(shape.schema, context.root));
  const placeholder = isRequired ? undefined : escapeInvisible(skeleton.slice(0, MAX_PLACEHOLDER));
  const element = h("textarea.code", { id, rows: 1, placeholder, spellcheck: "false", ...about });
  if (initial !== undefined) element.value = toPretty(initial);
  else if (isRequired && !shape.isNullable) element.value = skeleton;

  function read(): Reading {
    if (!element.value.trim()) return readEmpty(shape, place, element);
    const parsed = parseJson(element.value);
    return "problem" in parsed ? { problem: { text: parsed.problem, focus: element } } : parsed;
  }

  return { element, read };
}
