/**
 * The panels of tools, prompts, resources and templates.
 */
import { isObject } from "../../../core/kit/json.ts";
import { parseTemplate, type UriTemplate } from "../../../core/protocol/uri_template.ts";
import { type AppView, makeAppView } from "./app_view.ts";
import { makeArgumentFields } from "./argument_fields.ts";
import { Runner } from "./call_runner.ts";
import { makeFold, showContents, showJson, showMarks, showNothing, showResource } from "./content_view.ts";
import { type Child, h, serverText } from "./dom.ts";
import { makeSwitchedForm } from "./forms.ts";
import { type Json, toObject, toObjects, toText } from "./json.ts";
import { toParamHeaders } from "./schema_reader.ts";
import { server } from "./server_facts.ts";
import { makeWatchButton } from "./subscription_panel.ts";

/** The name of the event that fills in the form of a panel with the event's `detail`, and sends the call. */
export const REPEAT = "repeat";

interface PanelParts {
  readonly name: string;
  readonly title?: string;
  /** Elements between the description and the form. */
  readonly before?: readonly Child[];
  readonly form: readonly Child[];
  readonly runner: Runner;
  fill?(given: Json): void;
  send(): void;
  /** Collapsed sections after the result, keyed by title. */
  readonly folds?: Readonly<Record<string, unknown>>;
}

function makePanel(item: Json, { name, title, before = [], form, runner, fill, send, folds }: PanelParts): HTMLElement {
  const shownTitle = toText(item.title) ?? title;
  const description = toText(item.description);
  const formElement = h("form", { novalidate: true, autocomplete: "off" }, ...form, runner.actions);
  formElement.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  formElement.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    formElement.requestSubmit();
  });
  const element = h(
    "article",
    h("h2", serverText(name)),
    shownTitle !== undefined && shownTitle !== name && h("p.title", serverText(shownTitle)),
    description !== undefined && h("p.description", serverText(description)),
    ...before,
    formElement,
    runner.output,
    h(
      "div.folds",
      ...Object.entries({ ...folds, Definition: item }).map(([title, value]) => makeFold(title, () => showJson(value))),
    ),
  );
  element.addEventListener(REPEAT, (event) => {
    if (event instanceof CustomEvent) fill?.(toObject(event.detail));
    send();
  });
  return element;
}

export function makeToolPanel(tool: Json): HTMLElement {
  const name = String(tool.name);
  const schema = toObject(tool.inputSchema);
  const annotations = toObject(tool.annotations);
  const fields = makeSwitchedForm(schema);
  const runner = new Runner("Call");
  const hints = {
    readOnlyHint: "read-only",
    destructiveHint: "destructive",
    idempotentHint: "idempotent",
    openWorldHint: "open world",
  };
  const marks = Object.entries(hints).filter(([hint]) => annotations[hint] === true).map(([, words]) => words);

  let app: AppView | undefined;

  async function send(): Promise<void> {
    const given = fields.read();
    if (!given) return;
    await app?.close();
    await runner.run({
      method: "tools/call",
      params: { name, arguments: given },
      paramHeaders: toParamHeaders(schema, given),
      present(result) {
        app = makeAppView({ tool, given, result });
        return [...app ? [app.element] : [], ...presentToolResult(result)];
      },
      call: { list: "Tools", key: name, given },
    });
  }

  return makePanel(tool, {
    name,
    title: toText(annotations.title),
    before: [marks.length > 0 && h("p", showMarks(marks))],
    form: [fields.element],
    runner,
    fill: fields.fill,
    send: () => void send(),
    folds: {
      "Input schema": schema,
      ...tool.outputSchema === undefined ? {} : { "Output schema": tool.outputSchema },
    },
  });
}

function presentToolResult({ content, structuredContent }: Json): readonly HTMLElement[] {
  const hasContent = content !== undefined && !(isEmpty(content) && structuredContent !== undefined);
  return [
    ...hasContent ? showContents(content) : [],
    ...structuredContent === undefined
      ? []
      : [h("div.block", h("h3", "Structured content"), showJson(structuredContent))],
  ];
}

function isEmpty(list: unknown): boolean {
  return Array.isArray(list) && !list.length;
}

export function makePromptPanel(prompt: Json): HTMLElement {
  const name = String(prompt.name);
  const list = toObjects(prompt.arguments).map((argument) => ({
    name: String(argument.name),
    title: toText(argument.title),
    description: toText(argument.description),
    isRequired: argument.required === true,
  }));
  const fields = makeArgumentFields(list, { reference: canComplete() ? { type: "ref/prompt", name } : undefined });
  const runner = new Runner("Get");

  function send(): void {
    const given = fields.read();
    void runner.run({
      method: "prompts/get",
      params: { name, arguments: given },
      present: presentPrompt,
      call: { list: "Prompts", key: name, given },
    });
  }

  const form = [list.length ? fields.element : h("p.muted", "No arguments.")];
  return makePanel(prompt, { name, form, runner, fill: fields.fill, send });
}

function presentPrompt({ description, messages }: Json): readonly HTMLElement[] {
  return [
    ...toText(description) === undefined ? [] : [h("p.description", serverText(description))],
    ...toObjects(messages).map(({ role, content }) =>
      h("div.turn", h("strong", serverText(role)), ...showContents(content))
    ),
    ...isEmpty(messages) ? [showNothing("The prompt has no messages.")] : [],
  ];
}

export function makeResourcePanel(resource: Json): HTMLElement {
  const uri = String(resource.uri);
  const name = toText(resource.name) ?? uri;
  const runner = new Runner("Read");
  if (toObject(server.capabilities.resources).subscribe === true) runner.actions.append(makeWatchButton(uri));
  const facts = [
    ...toText(resource.mimeType) === undefined ? [] : [String(resource.mimeType)],
    ...typeof resource.size === "number" ? [`${resource.size} bytes`] : [],
  ];
  return makePanel(resource, {
    name,
    before: [
      name !== uri && h("p.address", h("code", serverText(uri))),
      facts.length > 0 && h("p", showMarks(facts)),
    ],
    form: [],
    runner,
    send: () => read(runner, uri, { list: "Resources", key: uri, given: {} }),
  });
}

function read(runner: Runner, uri: string, call: { list: string; key: string; given: Json }): void {
  void runner.run({ method: "resources/read", params: { uri }, present: presentResource, call });
}

function presentResource({ contents }: Json): readonly HTMLElement[] {
  return isEmpty(contents)
    ? [showNothing("The resource has no contents.")]
    : toObjects(contents).map((each) => showResource(each));
}

export function makeTemplatePanel(item: Json): HTMLElement {
  const pattern = String(item.uriTemplate);
  const template = readTemplate(pattern);
  const reference = canComplete() ? { type: "ref/resource", uri: pattern } : undefined;
  const shown = h("code");
  const list = typeof template === "string" ? [] : template.variables.map((name) => ({ name, isRequired: false }));
  const fields = makeArgumentFields(list, { reference, onChange: draw });
  const runner = new Runner("Read");
  const toUri = () => typeof template === "string" ? pattern : template.expand(toWellFormed(fields.read()));

  function draw(): void {
    shown.replaceChildren(serverText(toUri()));
  }

  draw();
  const problem = typeof template === "string" && h("p.problem", serverText(template));
  return makePanel(item, {
    name: toText(item.name) ?? pattern,
    before: [h("p.address", h("code", serverText(pattern))), problem],
    form: [fields.element, h("p.address", "URI: ", shown)],
    runner,
    fill: fields.fill,
    send: () => read(runner, toUri(), { list: "Resources", key: pattern, given: fields.read() }),
  });
}

/** Parses a URI template. If the template is not supported, returns the reason as a string. */
function readTemplate(pattern: string): UriTemplate | string {
  try {
    return parseTemplate(pattern);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

// Replaces lone surrogates, because a URI cannot contain them.
function toWellFormed(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.toWellFormed()]));
}

function canComplete(): boolean {
  return isObject(server.capabilities.completions);
}
