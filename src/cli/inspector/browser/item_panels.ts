/**
 * The panels of tools, prompts, resources and templates.
 *
 * @module
 */
import type { MakeArguments } from "./argument_fields.ts";
import type { MakeRunner } from "./call_runner.ts";
import type { Dom, Element } from "./dom.ts";
import type { Forms } from "./forms.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { SchemaReader } from "./schema_reader.ts";
import type { ContentView } from "./content_view.ts";
import type { UriTemplates } from "./uri_template.ts";

/** Dependencies. */
export interface ItemPanelParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: ContentView;
  readonly forms: Forms;
  readonly schemas: SchemaReader;
  readonly templates: UriTemplates;
  readonly makeArguments: MakeArguments;
  readonly makeRunner: MakeRunner;
  /** Whether the server supports completions. */
  readonly canComplete: () => boolean;
  /** Whether the server supports subscriptions to resources. */
  readonly canWatch: () => boolean;
  /** A button that watches a resource. */
  readonly watchButton: (uri: string) => Element;
}

/** Makes panels. */
export interface ItemPanels {
  tool(tool: Json): Element;
  prompt(prompt: Json): Element;
  resource(resource: Json): Element;
  template(template: Json): Element;
}

/** Creates the factory. */
export function createItemPanels(parts: ItemPanelParts): ItemPanels {
  const { dom: { h, serverText }, json, show, forms, schemas, templates, makeArguments, makeRunner } = parts;
  const { isObject, objects, text } = json;

  /** A panel with name, description and content. */
  function panel(item: Json, name: string, body: readonly (Element | undefined)[]): Element {
    const title = text(item.title) ?? (isObject(item.annotations) ? text(item.annotations.title) : undefined);
    const description = text(item.description);
    return h(
      "article",
      {},
      h("h2", {}, serverText(name)),
      title === undefined || title === name ? undefined : h("p.title", {}, serverText(title)),
      description === undefined ? undefined : h("p.description", {}, serverText(description)),
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
        paramHeaders: schemas.toParamHeaders(schema, given),
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
      reference: parts.canComplete() ? { type: "ref/prompt", name } : undefined,
    });
    const runner = makeRunner("Get");
    const send = () =>
      void runner.run({
        method: "prompts/get",
        params: { name, arguments: fields.read() },
        present: ({ description, messages }) => [
          ...text(description) === undefined ? [] : [h("p.description", {}, serverText(description))],
          ...objects(messages).map(({ role, content }) =>
            h("div.turn", {}, h("strong", {}, serverText(role)), ...show.contents(content))
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
    if (parts.canWatch()) runner.actions.append(parts.watchButton(uri));
    const facts = [text(resource.mimeType), typeof resource.size === "number" && `${resource.size} bytes`]
      .filter((fact) => typeof fact === "string");
    const name = text(resource.name) ?? uri;
    return panel(resource, name, [
      name === uri ? undefined : h("p.address", {}, h("code", {}, serverText(uri))),
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
    const reference = parts.canComplete() ? { type: "ref/resource", uri: pattern } : undefined;
    const shown = h("code");
    const fields = makeArguments(list, { reference, changed: draw });
    const runner = makeRunner("Read");
    const toUri = () => templates.expand(pattern, fields.read());
    const send = () =>
      void runner.run({ method: "resources/read", params: { uri: toUri() }, present: presentContents });

    function draw(): void {
      shown.replaceChildren(serverText(toUri()));
    }

    draw();
    return panel(template, text(template.name) ?? pattern, [
      h("p.address", {}, h("code", {}, serverText(pattern))),
      form(send, fields.element, h("p.address", {}, "URI: ", shown), runner.actions),
      runner.output,
      h("div.folds", {}, show.fold("Definition", () => show.json(template))),
    ]);
  }

  return { tool, prompt, resource, template };
}
