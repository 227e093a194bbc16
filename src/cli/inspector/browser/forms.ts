/**
 * Creates forms from JSON Schemas.
 */
import { isObject } from "../../../core/kit/json.ts";
import { makeCompoundControl } from "./compound_controls.ts";
import { escapeInvisible, h, makeButton, newId, serverText } from "./dom.ts";
import type { Field, FieldsPlace, FormContext, Place, Problem, Reading } from "./form_field.ts";
import { type Json, parseJson, toObject, toPretty, toText } from "./json.ts";
import { type Shape, toShape } from "./schema_reader.ts";
import { makeValueControl } from "./value_controls.ts";
import { findProblem } from "./value_check.ts";

/** Maximum number of fields that a form shows initially. */
const MAX_FIELDS = 300;
/** Maximum number of fields to create for one object at a time. */
const MAX_FIELDS_AT_ONCE = 100;
/** Maximum length of a description, in characters. */
const MAX_DESCRIPTION = 4000;

export interface ObjectForm {
  readonly element: HTMLElement;
  /** Returns the object. If a value has a problem, shows the problem, focuses the field and returns `undefined`. */
  read(): Json | undefined;
  /** Returns the current valid values. */
  readPartial(): Json;
}

/** How a form looks. */
export interface FormOptions {
  /** The initial values. */
  readonly given?: Json;
  /** Whether the title of a field comes before its name, as for users. */
  readonly isTitleFirst?: boolean;
}

/** Creates a form with a field for each property. */
export function makeForm(schema: Json, { given = {}, isTitleFirst = false }: FormOptions = {}): ObjectForm {
  const context: FormContext = { root: schema, budget: { fields: MAX_FIELDS }, isTitleFirst, makeControl, makeFields };
  // Resolve the root schema first, because it may be a reference or a combination of schemas.
  const fields = makeFields(toShape(schema, schema).schema, { context, given, depth: 0 });

  function read(): Json | undefined {
    const { value, problem } = fields.read();
    if (!problem) return toObject(value);
    problem.focus.focus();
  }

  return { element: fields.element, read, readPartial: () => toObject(fields.read().value) };
}

export interface SwitchedForm {
  readonly element: HTMLElement;
  /** Shows and focuses a problem, if any, and then returns `undefined`. */
  read(): Json | undefined;
  /** Replaces all values. */
  fill(given: Json): void;
}

/** Creates a form with a switch to a JSON editor for the whole object. */
export function makeSwitchedForm(schema: Json): SwitchedForm {
  let form: ObjectForm | undefined = makeForm(schema);
  const body = h("div", form.element);
  const area = h("textarea.code", { rows: 4, spellcheck: "false", "aria-label": "Arguments as JSON" });
  const problem = h("p.problem", { role: "alert" });
  const modes = [makeButton("button", "Form", toForm), makeButton("button", "JSON", toJson)];
  const choice = h("div.modes", { role: "group", "aria-label": "Fill in as" }, ...modes);
  const element = h("div", h("div.split", h("h3", "Arguments"), choice), body);
  mark();

  function mark(): void {
    modes.forEach((mode, at) => mode.ariaPressed = String((at === 0) === (form !== undefined)));
  }

  function toJson(): void {
    if (!form) return;
    area.value = toPretty(form.readPartial());
    problem.textContent = "";
    form = undefined;
    body.replaceChildren(area, problem);
    mark();
  }

  function toForm(): void {
    const given = form ? undefined : readArea();
    if (given) fill(given);
  }

  function fill(given: Json): void {
    form = makeForm(schema, { given });
    body.replaceChildren(form.element);
    mark();
  }

  function readArea(): Json | undefined {
    const parsed = parseJson(area.value);
    problem.textContent = "problem" in parsed ? parsed.problem : "";
    if ("value" in parsed && isObject(parsed.value)) return parsed.value;
    problem.textContent ||= "This is not a JSON object.";
    area.focus();
  }

  return { element, read: () => form ? form.read() : readArea(), fill };
}

function makeControl(shape: Shape, place: Place): Field {
  const field = makeCompoundControl(shape, place) ?? makeValueControl(shape, place);

  function read(): Reading {
    const reading = field.read();
    const text = reading.problem ? undefined : findProblem(reading.value, shape.schema);
    return text === undefined ? reading : { ...reading, problem: { text, focus: field.focus ?? field.element } };
  }

  return { ...field, read };
}

function makeFields(schema: Json, place: FieldsPlace): Field {
  const { context, given, depth, fixed = {} } = place;
  const { budget } = context;
  const properties = toObject(schema.properties);
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const known = Object.entries(properties).filter(([name]) => !Object.hasOwn(fixed, name));
  // Create required fields first, because the optional fields may never be shown.
  const ordered = known.length > MAX_FIELDS_AT_ONCE
    ? [...known.filter(([name]) => required.has(name)), ...known.filter(([name]) => !required.has(name))]
    : known;
  const parts: (readonly [name: string, field: Field])[] = [];
  const list = h("div.fields");
  const more = makeButton("button.small", "", showMore);
  const unshown = h("p.problem", { role: "alert" });
  const moreRow = h("div.more", more, unshown);

  // Keep values without a field, so that values from the JSON editor are also sent.
  const others = Object.entries(given).filter(([name]) => !Object.hasOwn(properties, name));
  const { additionalProperties } = schema;
  const takesOthers = isObject(additionalProperties) || additionalProperties === true;
  const rest = takesOthers && known.length ? makeRestField(additionalProperties, others, place) : undefined;
  const element = h("div", list, moreRow, rest?.element);
  if (!known.length && !others.length && !depth) list.append(h("p.muted", "No arguments."));
  if (others.length && !rest) {
    const names = others.slice(0, MAX_FIELDS_AT_ONCE).map(([name]) => name).join(", ");
    element.append(h("p.muted", "Also sent: ", serverText(names)));
  }
  show(Math.max(1, Math.min(MAX_FIELDS_AT_ONCE, budget.fields)));

  function showMore(): void {
    const [first] = ordered.slice(parts.length).map(([name]) => name);
    budget.fields = Math.max(budget.fields, MAX_FIELDS_AT_ONCE);
    show(MAX_FIELDS_AT_ONCE);
    const shown = parts.find(([name]) => name === first);
    shown?.[1].element.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
  }

  function show(count: number): void {
    for (const [name, schema] of ordered.slice(parts.length, parts.length + count)) {
      budget.fields--;
      const initial = Object.hasOwn(given, name) ? given[name] : undefined;
      const field = makeField({ context, depth, name, schema, initial, isRequired: required.has(name) });
      parts.push([name, field]);
      list.append(field.element);
    }
    const left = ordered.length - parts.length;
    more.textContent = `Show ${Math.min(left, MAX_FIELDS_AT_ONCE)} more of ${left} fields`;
    unshown.textContent = "";
    moreRow.hidden = !left;
  }

  function read(): Reading {
    const readings = parts.map(([name, field]) => [name, field.read()] as const);
    const others = rest?.read() ?? {};
    const problem = [...readings.map(([, { problem }]) => problem), others.problem, findUnshown()].find((each) => each);
    return { problem, value: toValue(readings, others.value) };
  }

  /** Use `fromEntries`, because an assignment to `__proto__` would not add a property. */
  function toValue(readings: readonly (readonly [name: string, reading: Reading])[], restValue: unknown): Json {
    const hidden = ordered.slice(parts.length).filter(([name]) => Object.hasOwn(given, name));
    const further = rest ? Object.entries(toObject(restValue)) : others;
    return Object.fromEntries([
      ...Object.entries(fixed),
      ...readings.flatMap(([name, { value }]) => value === undefined ? [] : [[name, value] as const]),
      ...hidden.map(([name]) => [name, given[name]] as const),
      ...further.filter(([name]) => !Object.hasOwn(properties, name)),
    ]);
  }

  function findUnshown(): Problem | undefined {
    const missing = ordered.slice(parts.length).filter(([name]) => required.has(name) && !Object.hasOwn(given, name));
    unshown.textContent = missing.length ? `${missing.length} required fields are not shown yet.` : "";
    return missing.length ? { text: unshown.textContent, focus: more, isShown: true } : undefined;
  }

  return { element, read };
}

/** Creates the field for properties that are not in the schema's `properties`. */
function makeRestField(schema: unknown, others: readonly [string, unknown][], { context, depth }: FieldsPlace): Field {
  const type = isObject(schema) ? ` Each value: ${toShape(schema, context.root).hint}.` : "";
  return makeField({
    context,
    depth,
    name: "Other fields",
    schema: { type: "object", description: `Further fields, as a JSON object.${type}` },
    initial: others.length ? Object.fromEntries(others) : undefined,
    isRequired: false,
  });
}

interface Property extends Omit<Place, "id" | "about" | "fixed"> {
  /** If `initial` is `undefined`, the schema's default is used. */
  readonly schema: unknown;
}

function makeField(property: Property): Field {
  const { context, name, schema, isRequired, depth } = property;
  const id = newId();
  const shape = toShape(schema, context.root);
  const title = toText(shape.schema.title);
  const description = toText(shape.schema.description)?.slice(0, MAX_DESCRIPTION);
  const { initial = shape.schema.default } = property;
  const type = h("span.type", { id: newId() }, escapeInvisible(shape.hint));
  const hint = h("p.hint", { id: newId() }, serverText(description ?? ""));
  hint.hidden = description === undefined;
  const problem = h("p.problem", { id: newId(), role: "alert" });
  problem.hidden = true;
  const isList = ["choices", "list", "object"].includes(shape.kind);
  const about = {
    "aria-describedby": [type, hint, problem].map((each) => each.id).join(" "),
    ...isRequired && !isList ? { "aria-required": "true" } : {},
  };
  const control = makeControl(shape, { context, id, name, isRequired, initial, about, depth });
  const isGroup = control.isGroup === true;
  const isBox = control.element.getAttribute("type") === "checkbox";
  const label = h(isGroup ? "span.label" : "label", { id: newId(), for: isGroup ? undefined : id });
  const named = h("span.name", serverText(name.slice(0, MAX_DESCRIPTION)));
  const titled = title !== undefined && title !== name &&
    h("span.title", serverText(title.slice(0, MAX_DESCRIPTION)));
  if (!titled) label.append(named);
  else label.append(...context.isTitleFirst ? [titled, " ", named] : [named, " ", titled]);
  // Show a warning, because an input does not show invisible characters, but sends them.
  const unseen = typeof initial === "string" && initial !== escapeInvisible(initial);
  const element = h(
    isBox ? "div.field.box" : "div.field",
    isGroup ? { role: "group", "aria-labelledby": label.id, ...about } : {},
    h("div.labels", label, type, isRequired && h("span.required", "required")),
    // Put the description of a group before the group's controls.
    isGroup && hint,
    control.element,
    !isGroup && hint,
    unseen && h("p.hint", "Contains invisible characters: ", serverText(initial.slice(0, MAX_DESCRIPTION))),
    problem,
  );

  function read(): Reading {
    const reading = control.read();
    for (const part of element.querySelectorAll(`[data-of=${problem.id}]`)) {
      part.removeAttribute("aria-invalid");
      part.removeAttribute("data-of");
    }
    const isOwn = reading.problem !== undefined && !reading.problem.isShown;
    problem.hidden = !isOwn;
    if (!reading.problem) return reading;
    const { text, focus } = reading.problem;
    if (isOwn) {
      problem.textContent = text;
      focus.ariaInvalid = "true";
      focus.dataset.of = problem.id;
    }
    return { value: reading.value, problem: { text, focus, isShown: true } };
  }

  return { element, read };
}
