/**
 * Controls for objects, lists and unions.
 */
import { isObject } from "../../../core/kit/json.ts";
import { escapeInvisible, h, makeButton, newId, setAttributes } from "./dom.ts";
import type { Field, Place, Reading } from "./form_field.ts";
import { resembles, type Shape, toShape } from "./schema_reader.ts";

/** Maximum number of nested levels, because more levels would not fit on a screen. */
const MAX_DEPTH = 6;
const MAX_ROWS = 100;
const CONTROLS = "input, textarea, select";

/** Returns `undefined` if the control would be nested too deeply or have too many fields. */
export function makeCompoundControl(shape: Shape, place: Place): Field | undefined {
  if (place.depth >= MAX_DEPTH || place.context.budget.fields <= 0) return;
  if (shape.kind === "object") return makeObject(shape, place);
  if (shape.kind === "union") return makeUnion(shape, place);
  return shape.kind === "list" ? makeList(shape, place) : undefined;
}

/** Creates the fields of an object. For an optional object, a button adds and removes the object. */
function makeObject(shape: Shape, place: Place): Field {
  const { context, name, isRequired, initial, depth, fixed } = place;
  const isFixed = isRequired && !shape.isNullable;
  const body = h("div.nested");
  const toggleButton = makeButton("button.small", "", toggle);
  const element = h("div", !isFixed && toggleButton, body);
  // The fields stay here while the object is removed, so that a user who removes the object by mistake loses no input.
  let fields: Field | undefined;
  let isThere = false;
  turn(isFixed || isObject(initial));

  function turn(toThere: boolean): void {
    isThere = toThere;
    if (isThere) {
      fields ??= context.makeFields(shape.schema, {
        context,
        given: isObject(initial) ? initial : {},
        depth: depth + 1,
        fixed,
      });
      body.replaceChildren(fields.element);
    }
    body.hidden = !isThere;
    const verb = !isThere ? "Add" : isRequired ? "Send null" : "Remove";
    toggleButton.textContent = verb;
    toggleButton.ariaLabel = escapeInvisible(`${verb}: ${name}`);
  }

  function toggle(): void {
    // Raise the limit, because the user requested these fields.
    context.budget.fields = Math.max(context.budget.fields, MAX_ROWS);
    turn(!isThere);
    if (isThere) focusFirst(body);
  }

  function read(): Reading {
    if (isThere && fields) return fields.read();
    return isRequired && shape.isNullable ? { value: null } : {};
  }

  return { element, isGroup: true, focus: toggleButton, read };
}

/** Creates a select for choosing a variant, and a control for the chosen variant. */
function makeUnion({ variants, isNullable }: Shape, place: Place): Field {
  const { context, id, name, isRequired, initial, about, depth } = place;
  const { root, budget } = context;
  const titles = [...variants.map(({ title }) => title), ...isNullable ? ["null"] : []];
  const options = titles.map((title, at) => h("option", { value: at }, escapeInvisible(title.slice(0, 100))));
  const none = h("option", { value: "" }, isRequired ? "Choose …" : "Not sent");
  const select = h("select", { id, change: draw, ...about }, none, ...options);
  const body = h("div.nested");
  const element = h("div.union", select, body);
  const nullAt = String(variants.length);
  let field: Field | undefined;
  if (initial === null && isNullable) select.value = nullAt;
  else if (initial !== undefined) {
    const fitting = variants.findIndex(({ schema }) => resembles(initial, schema, root));
    select.value = String(Math.max(0, fitting));
  }
  draw();

  function draw(): void {
    const variant = select.value === "" ? undefined : variants[Number(select.value)];
    body.hidden = !variant;
    body.replaceChildren();
    field = undefined;
    if (!variant) return;
    budget.fields = Math.max(budget.fields, 1);
    const shape = toShape(variant.schema, root);
    field = context.makeControl(shape, {
      context,
      id: newId(),
      name,
      isRequired: true,
      initial: resembles(initial, variant.schema, root) ? initial : shape.schema.default,
      about: { "aria-label": escapeInvisible(`${name}, ${variant.title}`) },
      depth: depth + 1,
      fixed: variant.fixed,
    });
    // Hide the control of a constant, because a constant has only one value.
    body.hidden = shape.kind === "choice" && shape.choices.length === 1;
    body.append(field.element);
  }

  function read(): Reading {
    if (field) return field.read();
    if (select.value === nullAt && isNullable) return { value: null };
    return isRequired ? { problem: { text: "Choose one.", focus: select } } : {};
  }

  return { element, focus: select, read };
}

/** Returns `undefined` if the initial list is too long. */
function makeList(shape: Shape, { context, name, isRequired, initial, depth }: Place): Field | undefined {
  const { root, budget } = context;
  const { minItems } = shape.schema;
  const item = toShape(shape.items, root);
  const isGroup = ["object", "list", "choices", "union"].includes(item.kind);
  const about = { "aria-label": escapeInvisible(`${name}, item`) };
  const list = h("ul.rows");
  const adder = makeButton("button.small", "Add an item", () => focusFirst(add()));
  adder.ariaLabel = escapeInvisible(`Add an item to ${name}`);
  const element = h("div", list, adder);
  const fields = new Map<HTMLElement, Field>();
  const minimum = isRequired && typeof minItems === "number" ? Math.min(minItems, 20) : 0;
  const start = Array.isArray(initial) ? initial : Array.from({ length: minimum });
  if (start.length > MAX_ROWS) return;
  for (const value of start) add(value);

  function add(value: unknown = item.schema.default): HTMLElement {
    budget.fields = Math.max(budget.fields - 1, 1);
    const place = { context, id: newId(), name: `${name}, item`, isRequired: true, initial: value, about };
    const field = context.makeControl(item, { ...place, depth: depth + 1 });
    const remove = makeButton("button.quiet.small", "×", () => {
      fields.delete(row);
      row.remove();
      adder.focus();
    });
    remove.ariaLabel = escapeInvisible(`Remove this item from ${name}`);
    const row = h(isGroup ? "li.part" : "li", field.element, remove);
    if (isGroup) setAttributes(row, { role: "group", ...about });
    fields.set(row, field);
    list.append(row);
    return row;
  }

  function read(): Reading {
    const readings = [...fields.values()].map((field) => field.read());
    const problem = readings.map((reading) => reading.problem).find((problem) => problem);
    const value = readings.flatMap(({ value }) => value === undefined ? [] : [value]);
    return { problem, value: value.length || isRequired ? value : undefined };
  }

  return { element, isGroup: true, focus: adder, read };
}

function focusFirst(element: HTMLElement): void {
  element.querySelector<HTMLElement>(CONTROLS)?.focus();
}
