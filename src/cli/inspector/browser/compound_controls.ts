/**
 * Controls for objects, lists and unions.
 *
 * @module
 */
import type { Field, MakeCompound, MakeControl, Place, Reading } from "./value_controls.ts";
import type { Dom, Element } from "./dom.ts";
import type { MakeFields } from "./forms.ts";
import type { JsonTools } from "./json_tools.ts";
import type { SchemaReader, Shape } from "./schema_reader.ts";

/** Dependencies. */
export interface CompoundParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly schemas: SchemaReader;
  readonly makeControl: () => MakeControl;
  readonly makeFields: () => MakeFields;
}

/** Creates the factory. */
export function createCompoundControls({ dom, json, schemas, makeControl, makeFields }: CompoundParts): MakeCompound {
  const { h, escapeInvisible, newId } = dom;
  const { isObject } = json;
  const controls = "input, textarea, select";
  const maxDepth = 6; // levels that fit on a screen
  const maxRows = 100;

  function toCompound(shape: Shape, place: Place): Field | undefined {
    if (place.depth >= maxDepth || place.budget.fields <= 0) return;
    if (shape.kind === "object") return toObject(shape, place);
    return shape.kind === "union" ? toUnion(shape, place) : toList(shape, place);
  }

  /** The fields of an object. An optional object has a button that adds and removes it. */
  function toObject(shape: Shape, place: Place): Field {
    const { name, isRequired, initial } = place;
    const body = h("div.nested");
    const isFixed = isRequired && !shape.isNullable;
    const toggleButton = h("button.small", { type: "button", click: () => turn() });
    const element = h("div", {}, !isFixed && toggleButton, body);
    let filled: ReturnType<MakeFields> | undefined;
    let kept: ReturnType<MakeFields> | undefined; // removing an object by mistake loses no input
    draw();
    if (isFixed || isObject(initial)) fill();

    function fill(): void {
      const { root, depth, budget } = place;
      filled = kept ??= makeFields()(shape.schema, {
        root,
        given: isObject(initial) ? initial : {},
        depth: depth + 1,
        budget,
      });
      body.replaceChildren(filled.element);
      draw();
    }

    function turn(): void {
      if (filled) {
        filled = undefined;
        body.replaceChildren();
        draw();
        return;
      }
      // A request of the user overrides the limit.
      place.budget.fields = Math.max(place.budget.fields, maxRows);
      fill();
      body.querySelector(controls)?.focus();
    }

    function draw(): void {
      const absent = isRequired ? "Send null" : "Remove";
      toggleButton.textContent = filled ? absent : "Add";
      toggleButton.setAttribute("aria-label", escapeInvisible(`${filled ? absent : "Add"}: ${name}`));
      body.hidden = !filled;
    }

    return {
      element,
      isGroup: true,
      focus: toggleButton,
      read: () => filled ? filled.readField() : readAbsent(shape, place),
      readPartial: () => filled?.readPartial(),
    };
  }

  /** A choice of the variant, and a control for it. */
  function toUnion({ variants, isNullable }: Shape, place: Place): Field {
    const { id, name, isRequired, initial, root, about, depth, budget } = place;
    const nullAt = variants.length;
    const titles = isNullable ? [...variants.map(({ title }) => title), "null"] : variants.map(({ title }) => title);
    const options = titles.map((title, at) => h("option", { value: at }, escapeInvisible(title.slice(0, 100))));
    const select = h(
      "select",
      { id, change: draw, ...about },
      h("option", { value: "" }, isRequired ? "Choose …" : "Not sent"),
      ...options,
    );
    const body = h("div.nested");
    const element = h("div.union", {}, select, body);
    let field: Field | undefined;
    const fitting = variants.findIndex((variant) => schemas.resembles(initial, variant.schema, root));
    select.value = initial === undefined
      ? ""
      : initial === null && isNullable
      ? String(nullAt)
      : String(fitting < 0 ? 0 : fitting);
    draw();

    function draw(): void {
      const variant = select.value === "" ? undefined : variants[Number(select.value)];
      body.hidden = !variant;
      field = undefined;
      if (!variant) return body.replaceChildren();
      budget.fields = Math.max(budget.fields, 1);
      const shape = schemas.toShape(variant.schema, root);
      field = makeControl()(shape, {
        id: newId(),
        name,
        isRequired: true,
        initial: schemas.resembles(initial, variant.schema, root) ? initial : shape.schema.default,
        root,
        about: { "aria-label": escapeInvisible(`${name}, ${variant.title}`) },
        depth: depth + 1,
        budget,
      });
      // A constant needs no control.
      body.hidden = shape.kind === "choice" && shape.choices.length === 1;
      body.replaceChildren(field.element);
    }

    function read(): Reading {
      if (field) return field.read();
      if (select.value === String(nullAt) && isNullable) return { value: null };
      return isRequired ? { problem: "Choose one.", focus: select } : {};
    }

    return { element, focus: select, read, readPartial: () => field?.readPartial?.() };
  }

  /** Rows that can be added and removed. Returns `undefined` if the initial list is too long. */
  function toList(shape: Shape, { name, isRequired, initial, root, depth, budget }: Place): Field | undefined {
    const item = schemas.toShape(shape.items, root);
    const isPlain = ["text", "number", "boolean", "choice", "json"].includes(item.kind);
    const list = h("ul.rows");
    const adder = h(
      "button.small",
      {
        type: "button",
        "aria-label": escapeInvisible(`Add an item to ${name}`),
        click: () => add().querySelector(controls)?.focus(),
      },
      "Add an item",
    );
    const element = h("div", {}, list, adder);
    let rows: (readonly [Element, Field])[] = [];
    const minimum = isRequired && typeof shape.schema.minItems === "number" ? Math.min(shape.schema.minItems, 20) : 0;
    const start = Array.isArray(initial) ? initial : Array.from({ length: minimum });
    if (start.length > maxRows) return;
    for (const value of start) add(value);

    function add(value?: unknown): Element {
      budget.fields = Math.max(budget.fields - 1, 1);
      const field = makeControl()(item, {
        id: newId(),
        name: `${name}, item`,
        isRequired: true,
        initial: value === undefined ? item.schema.default : value,
        root,
        about: { "aria-label": escapeInvisible(`${name}, item`) },
        depth: depth + 1,
        budget,
      });
      const remove = h(
        "button.quiet.small",
        { type: "button", "aria-label": escapeInvisible(`Remove this item of ${name}`) },
        "×",
      );
      const group = isPlain ? {} : { role: "group", "aria-label": escapeInvisible(`${name}, item`) };
      const row = h(isPlain ? "li" : "li.part", group, field.element, remove);
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
      const readings = rows.map(([, field]) => field.read());
      const problem = readings.find((reading) => "problem" in reading);
      if (problem) return problem;
      const values = readings.flatMap((reading) => "value" in reading ? [reading.value] : []);
      return values.length || isRequired ? { value: values } : {};
    }

    const readPartial = () => rows.map(([, field]) => field.readPartial?.()).filter((value) => value !== undefined);
    return { element, isGroup: true, focus: adder, read, readPartial };
  }

  function readAbsent({ isNullable }: Shape, { isRequired }: Place): Reading {
    return isRequired && isNullable ? { value: null } : {};
  }

  return toCompound;
}
