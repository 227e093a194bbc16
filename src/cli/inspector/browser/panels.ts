/**
 * What stands on the right for a tool, a prompt, a resource or a template.
 *
 * @module
 */
import type { MakeArguments } from "./arguments.ts";
import type { MakeRunner } from "./calls.ts";
import type { Dom, Element } from "./dom.ts";
import type { Forms } from "./forms.ts";
import type { Json, JsonTools } from "./json.ts";
import type { SchemaReader } from "./schema.ts";
import type { Show } from "./show.ts";
import type { Templates } from "./template.ts";

/** What panels are built with. */
export interface PanelParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: Show;
  readonly forms: Forms;
  readonly schemas: SchemaReader;
  readonly templates: Templates;
  readonly makeArguments: MakeArguments;
  readonly makeRunner: MakeRunner;
  /** Whether the server completes arguments. */
  readonly completes: () => boolean;
  /** Whether the server tells of changes of single resources. */
  readonly watches: () => boolean;
  /** A button that watches a resource. */
  readonly watcher: (uri: string) => Element;
}

/** Makes panels. */
export interface Panels {
  tool(tool: Json): Element;
  prompt(prompt: Json): Element;
  resource(resource: Json): Element;
  template(template: Json): Element;
}

/** Makes the maker of panels. */
export function createPanels(parts: PanelParts): Panels {
  const { dom: { h, say }, json, show, forms, schemas, templates, makeArguments, makeRunner } = parts;
  const { isObject, objects, text } = json;

  /** The name, what it is for, and a form with what comes back below it. */
  function panel(item: Json, name: string, body: readonly (Element | undefined)[]): Element {
    const title = text(item.title) ?? (isObject(item.annotations) ? text(item.annotations.title) : undefined);
    const description = text(item.description);
    return h(
      "article",
      {},
      h("h2", {}, say(name)),
      title === undefined || title === name ? undefined : h("p.title", {}, say(title)),
      description === undefined ? undefined : h("p.description", {}, say(description)),
      ...body,
    );
  }

  function form(send: () => void, ...children: (Element | undefined)[]): Element {
    const element = h("form", { novalidate: true, autocomplete: "off" }, ...children);
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        element.requestSubmit();
      }
    });
    return element;
  }

  function tool(tool: Json): Element {
    const name = String(tool.name);
    const schema = isObject(tool.inputSchema) ? tool.inputSchema : {};
    const fields = forms.switched(schema);
    const runner = makeRunner("Call");
    const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = isObject(tool.annotations)
      ? tool.annotations
      : {};
    const words = [
      readOnlyHint === true && "read-only",
      destructiveHint === true && "destructive",
      idempotentHint === true && "idempotent",
      openWorldHint === true && "open world",
    ].filter((word) => word !== false);

    function send(): void {
      const given = fields.read();
      if (!given) return;
      runner.run({
        method: "tools/call",
        params: { name, arguments: given },
        repeated: schemas.toRepeated(schema, given),
        present: ({ content, structuredContent }) => [
          ...content === undefined || (isEmpty(content) && structuredContent !== undefined)
            ? []
            : show.contents(content),
          ...structuredContent === undefined
            ? []
            : [h("div.block", {}, h("h3", {}, "Structured content"), show.json(structuredContent))],
        ],
      });
    }

    return panel(tool, name, [
      words.length ? h("p", {}, show.marks(words)) : undefined,
      form(send, fields.element, runner.actions),
      runner.output,
      h(
        "div.folds",
        {},
        show.fold("Input schema", () => show.json(schema)),
        tool.outputSchema === undefined ? undefined : show.fold("Output schema", () => show.json(tool.outputSchema)),
        show.fold("Definition", () => show.json(tool)),
      ),
    ]);
  }

  function prompt(prompt: Json): Element {
    const name = String(prompt.name);
    const list = objects(prompt.arguments).map((argument) => ({
      name: String(argument.name),
      title: text(argument.title),
      description: text(argument.description),
      isRequired: argument.required === true,
    }));
    const fields = makeArguments(list, {
      reference: parts.completes() ? { type: "ref/prompt", name } : undefined,
    });
    const runner = makeRunner("Get");
    const send = () =>
      void runner.run({
        method: "prompts/get",
        params: { name, arguments: fields.read() },
        present: ({ description, messages }) => [
          ...text(description) === undefined ? [] : [h("p.description", {}, say(description))],
          ...objects(messages).map(({ role, content }) =>
            h("div.turn", {}, h("strong", {}, say(role)), ...show.contents(content))
          ),
          ...isEmpty(messages) ? [show.nothing("The prompt has no messages.")] : [],
        ],
      });
    return panel(prompt, name, [
      form(send, list.length ? fields.element : h("p.muted", {}, "No arguments."), runner.actions),
      runner.output,
      h("div.folds", {}, show.fold("Definition", () => show.json(prompt))),
    ]);
  }

  const isEmpty = (list: unknown) => Array.isArray(list) && !list.length;
  const presentContents = ({ contents }: Json) =>
    isEmpty(contents)
      ? [show.nothing("The resource has no contents.")]
      : objects(contents).map((each) => show.resource(each));

  function resource(resource: Json): Element {
    const uri = String(resource.uri);
    const runner = makeRunner("Read");
    const send = () => void runner.run({ method: "resources/read", params: { uri }, present: presentContents });
    if (parts.watches()) runner.actions.append(parts.watcher(uri));
    const facts = [text(resource.mimeType), typeof resource.size === "number" && `${resource.size} bytes`]
      .filter((fact) => typeof fact === "string");
    const name = text(resource.name) ?? uri;
    return panel(resource, name, [
      name === uri ? undefined : h("p.address", {}, h("code", {}, say(uri))),
      facts.length ? h("p", {}, show.marks(facts)) : undefined,
      form(send, runner.actions),
      runner.output,
      h("div.folds", {}, show.fold("Definition", () => show.json(resource))),
    ]);
  }

  function template(template: Json): Element {
    const pattern = String(template.uriTemplate);
    const names = templates.names(pattern);
    const list = names.map((name) => ({ name, isRequired: false }));
    const reference = parts.completes() ? { type: "ref/resource", uri: pattern } : undefined;
    const shown = h("code");
    const fields = makeArguments(list, { reference, changed: draw });
    const runner = makeRunner("Read");
    const toUri = () => templates.expand(pattern, fields.read());
    const send = () =>
      void runner.run({ method: "resources/read", params: { uri: toUri() }, present: presentContents });

    function draw(): void {
      shown.replaceChildren(say(toUri()));
    }

    draw();
    return panel(template, text(template.name) ?? pattern, [
      h("p.address", {}, h("code", {}, say(pattern))),
      form(send, fields.element, h("p.address", {}, "URI: ", shown), runner.actions),
      runner.output,
      h("div.folds", {}, show.fold("Definition", () => show.json(template))),
    ]);
  }

  return { tool, prompt, resource, template };
}
