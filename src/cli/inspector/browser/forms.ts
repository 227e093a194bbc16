/**
 * Forms from JSON schemas.
 *
 * @module
 */
import type { Field, MakeControl, Reading } from "./controls.ts";
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";
import type { SchemaReader } from "./schema.ts";

/** A form for an object. */
export interface ObjectForm {
  readonly element: Element;
  /** The object, or nothing if there is a problem, which is then shown and has the focus. */
  read(): Json | undefined;
}

/** Makes forms. */
export interface Forms {
  /** A field for every property. */
  fields(schema: Json): ObjectForm;
  /** The same, with a switch to one field for the whole object as JSON. */
  switched(schema: Json): ObjectForm;
}

/** What forms are built with. */
export interface FormParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly schemas: SchemaReader;
  readonly makeControl: MakeControl;
}

/** Makes the maker of forms. */
export function createForms({ dom: { h, say, visible, newId }, json, schemas, makeControl }: FormParts): Forms {
  const { isObject, text, parse, pretty } = json;

  interface FieldsForm extends ObjectForm {
    /** What is filled in without a problem. */
    peek(): Json;
  }

  /** A property of the object. */
  interface Property {
    readonly name: string;
    readonly schema: unknown;
    readonly isRequired: boolean;
    readonly given: Json;
    readonly root: Json;
  }

  function fields(root: Json, given: Json = {}): FieldsForm {
    const properties = isObject(root.properties) ? root.properties : {};
    const required = Array.isArray(root.required) ? root.required : [];
    const parts = Object.entries(properties).map(([name, schema]) => {
      return [name, toField({ name, schema, isRequired: required.includes(name), given, root })] as const;
    });
    // What came from JSON and has no field is sent on.
    const others = Object.entries(given).filter(([name]) => !Object.hasOwn(properties, name));
    const element = h("div.fields", {}, ...parts.map(([, part]) => part.element));
    if (!parts.length && !others.length) element.append(h("p.muted", {}, "No arguments."));
    if (others.length) {
      const names = others.map(([name]) => name).join(", ");
      element.append(h("p.muted", {}, "Sent too: ", say(names)));
    }

    const readAll = () => parts.map(([name, part]) => [name, part.read()] as const);
    // Made of entries, because an assignment to `__proto__` would be lost.
    const toObject = (readings: ReturnType<typeof readAll>) =>
      Object.fromEntries([
        ...readings.flatMap(([name, reading]) => "value" in reading ? [[name, reading.value] as const] : []),
        ...others,
      ]);

    function read(): Json | undefined {
      const readings = readAll();
      for (const [, reading] of readings) {
        if (!("problem" in reading)) continue;
        reading.focus.focus();
        return;
      }
      return toObject(readings);
    }

    return { element, read, peek: () => toObject(readAll()) };
  }

  function switched(schema: Json): ObjectForm {
    let asFields: FieldsForm | undefined = fields(schema);
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
        area.value = pretty(asFields.peek());
        problem.textContent = "";
        asFields = undefined;
        body.replaceChildren(area, problem);
      } else if (name === "Form" && !asFields) {
        const value = readArea();
        if (!value) return;
        asFields = fields(schema, value);
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

  /** A control with its label, its hints and a place for what is wrong. */
  function toField({ name, schema, isRequired, given, root }: Property): Field {
    const id = newId();
    const shape = schemas.toShape(schema, root);
    const { title, description } = shape.schema;
    const initial = Object.hasOwn(given, name) ? given[name] : shape.schema.default;
    const isGroup = shape.kind === "choices" || shape.kind === "list";
    const label = h(isGroup ? "span.label" : "label", { id: newId() }, h("span.name", {}, say(name)));
    if (!isGroup) label.setAttribute("for", id);
    if (text(title) && title !== name) label.append(" ", h("span.title", {}, say(title)));
    const type = h("span.type", { id: newId() }, visible(shape.hint));
    const hint = h("p.hint", { id: newId() }, say(text(description) ?? ""));
    hint.hidden = !text(description);
    const problem = h("p.problem", { id: newId(), role: "alert" });
    problem.hidden = true;
    const about = {
      "aria-describedby": [type, hint, problem].map((each) => each.id).join(" "),
      ...isRequired && !isGroup ? { "aria-required": "true" } : {},
    };
    const control = makeControl(shape, { id, name, isRequired, initial, root, about });
    const isBox = control.element.getAttribute("type") === "checkbox";
    const element = h(
      isBox ? "div.field.box" : "div.field",
      isGroup ? { role: "group", "aria-labelledby": label.id, ...about } : {},
      h("div.labels", {}, label, type, isRequired && h("span.required", {}, "required")),
      control.element,
      hint,
      problem,
    );

    function read(): Reading {
      const reading = control.read();
      for (const part of element.querySelectorAll("[aria-invalid]")) part.removeAttribute("aria-invalid");
      problem.hidden = !("problem" in reading);
      if ("problem" in reading) {
        problem.textContent = reading.problem;
        reading.focus.setAttribute("aria-invalid", "true");
      }
      return reading;
    }

    return { element, read };
  }

  return { fields: (schema) => fields(schema), switched };
}
