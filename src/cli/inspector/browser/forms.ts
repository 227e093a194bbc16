/**
 * Forms from JSON schemas.
 *
 * @module
 */
import type { Budget, Field, MakeControl, Reading } from "./value_controls.ts";
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { SchemaReader } from "./schema_reader.ts";

/** A form for an object. */
export interface ObjectForm {
  readonly element: Element;
  /** The object. If there is a problem, shows and focuses it and returns `undefined`. */
  read(): Json | undefined;
}

/** The fields of an object in a form. */
export interface Fields extends ObjectForm {
  /** Reads the object as the value of a field, and shows problems. */
  readField(): Reading;
  /** The valid values so far. */
  readPartial(): Json;
}

/** The context and initial values of fields. */
export interface FieldsPlace {
  /** The schema with the definitions that references name. */
  readonly root: Json;
  readonly given: Json;
  /** The number of objects and lists around them. */
  readonly depth: number;
  readonly budget: Budget;
}

/** Makes a field for every property. */
export type MakeFields = (schema: Json, place: FieldsPlace) => Fields;

/** Makes forms. */
export interface Forms {
  /** A field for every property. */
  fields(schema: Json): ObjectForm;
  /** Fields with a switch to a JSON editor for the whole object. */
  switched(schema: Json): ObjectForm;
  /** Makes the fields of an object in a form. */
  readonly makeFields: MakeFields;
}

/** Dependencies. */
export interface FormParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly schemas: SchemaReader;
  readonly makeControl: MakeControl;
}

/** Creates the factory. */
export function createForms({ dom, json, schemas, makeControl }: FormParts): Forms {
  const { h, serverText, escapeInvisible, newId } = dom;
  const { isObject, text, parse, pretty } = json;
  const maxFields = 300; // that a form builds initially
  const maxFieldsAtOnce = 100; // of one object
  const longest = 4000; // characters of a description

  /** A property of the object. */
  interface Property extends FieldsPlace {
    readonly name: string;
    readonly schema: unknown;
    readonly isRequired: boolean;
  }

  const toForm = (schema: Json, given: Json = {}) =>
    // The root of the schema may be a reference or a combination.
    makeFields(schemas.toShape(schema, schema).schema, {
      root: schema,
      given,
      depth: 0,
      budget: { fields: maxFields },
    });

  function makeFields(schema: Json, place: FieldsPlace): Fields {
    const { given, root, depth, budget } = place;
    const properties = isObject(schema.properties) ? schema.properties : {};
    const required = new Set(Array.isArray(schema.required) ? schema.required : []);
    const known = Object.entries(properties);
    // Required fields come first, because the others may never be shown.
    const ordered = known.length > maxFieldsAtOnce
      ? [...known.filter(([name]) => required.has(name)), ...known.filter(([name]) => !required.has(name))]
      : known;
    const parts: (readonly [name: string, field: Field])[] = [];
    const list = h("div.fields");
    const more = h("button.small", { type: "button", click: showMore });
    const unshown = h("p.problem", { role: "alert" });
    const moreRow = h("div.more", {}, more, unshown);

    // Values from JSON without a field are sent too.
    const others = Object.entries(given).filter(([name]) => !Object.hasOwn(properties, name));
    const { additionalProperties } = schema;
    const takesOthers = known.length > 0 && (isObject(additionalProperties) || additionalProperties === true);
    const rest = takesOthers ? toField(toRest()) : undefined;
    const element = h("div", {}, list, moreRow, rest?.element);
    if (!known.length && !others.length && !depth) list.append(h("p.muted", {}, "No arguments."));
    if (others.length && !rest) {
      const names = others.slice(0, maxFieldsAtOnce).map(([name]) => name).join(", ");
      element.append(h("p.muted", {}, "Also sent: ", serverText(names)));
    }
    show(Math.max(1, Math.min(maxFieldsAtOnce, budget.fields)));

    function toRest(): Property {
      const type = isObject(additionalProperties)
        ? ` Each one: ${schemas.toShape(additionalProperties, root).hint}.`
        : "";
      return {
        ...place,
        name: "Other fields",
        schema: { type: "object", description: `Further fields by name.${type}` },
        given: others.length ? { "Other fields": Object.fromEntries(others) } : {},
        isRequired: false,
      };
    }

    function showMore(): void {
      const [first] = ordered.slice(parts.length).map(([name]) => name);
      budget.fields = Math.max(budget.fields, maxFieldsAtOnce);
      show(maxFieldsAtOnce);
      const shown = parts.find(([name]) => name === first);
      shown?.[1].element.querySelector("input, textarea, select, button")?.focus();
    }

    function show(count: number): void {
      for (const [name, schema] of ordered.slice(parts.length, parts.length + count)) {
        budget.fields--;
        const field = toField({ ...place, name, schema, isRequired: required.has(name) });
        parts.push([name, field]);
        list.append(field.element);
      }
      const left = ordered.length - parts.length;
      more.textContent = `Show ${Math.min(left, maxFieldsAtOnce)} more of ${left} fields`;
      unshown.textContent = "";
      moreRow.hidden = !left;
    }

    const readAll = () => parts.map(([name, field]) => [name, field.read()] as const);

    /** Made of entries, because an assignment to `__proto__` would be lost. */
    function toObject(readings: ReturnType<typeof readAll>, restReading: Reading): Json {
      const hidden = ordered.slice(parts.length).filter(([name]) => Object.hasOwn(given, name));
      const further = "value" in restReading && isObject(restReading.value)
        ? Object.entries(restReading.value).filter(([name]) => !Object.hasOwn(properties, name))
        : rest
        ? []
        : others;
      return Object.fromEntries([
        ...readings.flatMap(([name, reading]) => "value" in reading ? [[name, reading.value] as const] : []),
        ...hidden.map(([name]) => [name, given[name]] as const),
        ...further,
      ]);
    }

    function findUnshown(): Reading | undefined {
      const missing = ordered.slice(parts.length).filter(([name]) => required.has(name) && !Object.hasOwn(given, name));
      unshown.textContent = missing.length ? `${missing.length} required fields are not shown yet.` : "";
      return missing.length ? { problem: unshown.textContent, focus: more, isShown: true } : undefined;
    }

    function readField(): Reading {
      const readings = readAll();
      const restReading = rest?.read() ?? {};
      const hidden = findUnshown();
      const problem = [...readings.map(([, reading]) => reading), restReading].find((one) => "problem" in one) ??
        hidden;
      return problem ?? { value: toObject(readings, restReading) };
    }

    function read(): Json | undefined {
      const reading = readField();
      if (!("problem" in reading)) return isObject(reading.value) ? reading.value : undefined;
      reading.focus.focus();
    }

    function readPartial(): Json {
      const readings = readAll().map(([name, reading], at) => {
        const value = "problem" in reading ? parts[at][1].readPartial?.() : undefined;
        return [name, value === undefined ? reading : { value }] as const;
      });
      return toObject(readings, rest?.read() ?? {});
    }

    return { element, read, readField, readPartial };
  }

  function switched(schema: Json): ObjectForm {
    let asFields: Fields | undefined = toForm(schema);
    const body = h("div", {}, asFields.element);
    const area = h("textarea.code", { rows: 4, spellcheck: "false", "aria-label": "Arguments as JSON" });
    const problem = h("p.problem", { role: "alert" });
    const modes = ["Form", "JSON"].map((name) => h("button", { type: "button", click: () => turn(name) }, name));
    const element = h(
      "div",
      {},
      h(
        "div.split",
        {},
        h("h3", {}, "Arguments"),
        h("div.modes", { role: "group", "aria-label": "Fill in as" }, ...modes),
      ),
      body,
    );
    mark("Form");

    function mark(name: string): void {
      for (const mode of modes) mode.setAttribute("aria-pressed", String(mode.textContent === name));
    }

    function turn(name: string): void {
      if (name === "JSON" && asFields) {
        area.value = pretty(asFields.readPartial());
        problem.textContent = "";
        asFields = undefined;
        body.replaceChildren(area, problem);
      } else if (name === "Form" && !asFields) {
        const value = readArea();
        if (!value) return;
        asFields = toForm(schema, value);
        body.replaceChildren(asFields.element);
      }
      mark(name);
    }

    function readArea(): Json | undefined {
      const parsed = parse(area.value);
      if ("value" in parsed && isObject(parsed.value)) {
        problem.textContent = "";
        return parsed.value;
      }
      problem.textContent = "problem" in parsed ? parsed.problem : "This is not a JSON object.";
      area.focus();
    }

    return { element, read: () => asFields ? asFields.read() : readArea() };
  }

  /** A control with its label, hints and problem. */
  function toField({ name, schema, isRequired, given, root, depth, budget }: Property): Field {
    const id = newId();
    const shape = schemas.toShape(schema, root);
    const title = text(shape.schema.title);
    const description = text(shape.schema.description)?.slice(0, longest);
    const initial = Object.hasOwn(given, name) ? given[name] : shape.schema.default;
    const type = h("span.type", { id: newId() }, escapeInvisible(shape.hint));
    const hint = h("p.hint", { id: newId() }, serverText(description ?? ""));
    hint.hidden = description === undefined;
    const problem = h("p.problem", { id: newId(), role: "alert" });
    problem.hidden = true;
    const isChoices = shape.kind === "choices" || shape.kind === "list" || shape.kind === "object";
    const about = {
      "aria-describedby": [type, hint, problem].map((each) => each.id).join(" "),
      ...isRequired && !isChoices ? { "aria-required": "true" } : {},
    };
    const control = makeControl(shape, { id, name, isRequired, initial, root, about, depth, budget });
    const isGroup = control.isGroup === true;
    const label = h(
      isGroup ? "span.label" : "label",
      { id: newId() },
      h("span.name", {}, serverText(name.slice(0, longest))),
    );
    if (!isGroup) label.setAttribute("for", id);
    if (title !== undefined && title !== name) {
      label.append(" ", h("span.title", {}, serverText(title.slice(0, longest))));
    }
    const isBox = control.element.getAttribute("type") === "checkbox";
    // The value of a control cannot show invisible characters, because it is sent unchanged.
    const unseen = typeof initial === "string" && initial !== escapeInvisible(initial);
    const element = h(
      isBox ? "div.field.box" : "div.field",
      isGroup ? { role: "group", "aria-labelledby": label.id, ...about } : {},
      h("div.labels", {}, label, type, isRequired && h("span.required", {}, "required")),
      control.element,
      hint,
      unseen && h("p.hint", {}, "Contains invisible characters: ", serverText(initial.slice(0, longest))),
      problem,
    );

    function read(): Reading {
      const reading = control.read();
      for (const part of element.querySelectorAll("[aria-invalid]")) {
        if (part.getAttribute("data-of") === problem.id) part.removeAttribute("aria-invalid");
      }
      const isOwn = "problem" in reading && !reading.isShown;
      problem.hidden = !isOwn;
      if (!("problem" in reading)) return reading;
      if (isOwn) {
        problem.textContent = reading.problem;
        reading.focus.setAttribute("aria-invalid", "true");
        reading.focus.setAttribute("data-of", problem.id);
      }
      return { ...reading, isShown: true };
    }

    return { element, read, readPartial: control.readPartial };
  }

  return { fields: (schema) => toForm(schema), switched, makeFields };
}
