/**
 * Dialogs for elicitation, sampling and roots requests.
 *
 * @see specification/2026-07-28/client/elicitation
 * @module
 */
import type { Browser, Dom, Element } from "./dom.ts";
import type { Forms } from "./forms.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { ContentView } from "./content_view.ts";

/** Asks the user, until `signal` aborts. Returns the response for the server, or `undefined` if the user gave none. */
export type AskUser = (method: string, params: Json, signal?: AbortSignal) => Promise<Json | undefined>;

/** Dependencies. */
export interface QuestionParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly forms: Forms;
  readonly show: ContentView;
  /** The name of the server. */
  readonly serverName: () => string;
}

/** Creates the dialogs. They open one after the other. */
export function createQuestionDialogs({ document }: Browser, parts: QuestionParts): AskUser {
  const { dom: { h, serverText, escapeInvisible, newId }, json: { isObject, objects, text }, forms, show, serverName } =
    parts;
  let last: Promise<unknown> = Promise.resolve();
  let withdrawal: AbortSignal | undefined; // of the open dialog

  /** The content of a dialog. */
  interface Question {
    readonly title: string;
    readonly body: readonly (Element | undefined)[];
    /** The labels of the buttons and their responses. `false` keeps the dialog open. */
    readonly answers: readonly (readonly [name: string, answer: () => Json | false | undefined])[];
    /** The response for Escape. */
    readonly dismissed: Json | undefined;
  }

  function ask({ title, body, answers, dismissed }: Question): Promise<Json | undefined> {
    return new Promise((resolve) => {
      const before = document.activeElement;
      const heading = h("h2", { id: newId() }, title);
      const [[firstName, first], ...others] = answers;
      const form = h(
        "form",
        { method: "dialog" },
        heading,
        ...body,
        h(
          "div.actions",
          {},
          h("button.primary", { type: "submit" }, firstName),
          ...others.map(([name, answer]) => h("button", { type: "button", click: () => end(answer()) }, name)),
        ),
      );
      const dialog = h("dialog", { "aria-labelledby": heading.id }, form);

      function end(answer: Json | false | undefined): void {
        if (answer === false) return;
        dialog.close();
        dialog.remove();
        before?.focus();
        resolve(answer);
      }

      form.addEventListener("submit", (event) => {
        event.preventDefault();
        end(first());
      });
      dialog.addEventListener("cancel", (event) => {
        event.preventDefault();
        end(dismissed);
      });
      withdrawal?.addEventListener("abort", () => dialog.isConnected && end(undefined));
      document.body.append(dialog);
      dialog.showModal();
      (dialog.querySelector("input, textarea, select, a") ?? dialog.querySelector("button"))?.focus();
    });
  }

  const from = () => h("p.muted", {}, "From ", serverText(serverName()));
  const cancel = { action: "cancel" };
  const declineOrCancel = [
    ["Decline", () => ({ action: "decline" })],
    ["Cancel", () => cancel],
  ] as const;

  function askForm({ message, requestedSchema }: Json): Promise<Json | undefined> {
    const form = forms.fields(isObject(requestedSchema) ? requestedSchema : {});
    const accept = () => {
      const content = form.read();
      return content ? { action: "accept", content } : false;
    };
    return ask({
      title: "The server asks for input",
      body: [from(), h("p.message", {}, serverText(message)), form.element],
      answers: [["Accept", accept], ...declineOrCancel],
      dismissed: cancel,
    });
  }

  function askUrl({ message, url }: Json): Promise<Json | undefined> {
    const address = String(url);
    const isWeb = /^https?:\/\//i.test(address) && URL.canParse(address);
    const link = isWeb
      ? h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, escapeInvisible(address))
      : h("code", {}, escapeInvisible(address));
    return ask({
      title: "The server asks you to open a web page",
      body: [
        from(),
        h("p.message", {}, serverText(message)),
        h("p.address", {}, link),
        isWeb ? h("p.muted", {}, "Host: ", h("strong", {}, serverText(new URL(address).host))) : undefined,
        h(
          "p.muted",
          {},
          isWeb ? "Open the page only if you trust this host." : "This is not the URL of a web page.",
        ),
      ],
      answers: [["Accept", () => ({ action: "accept" })], ...declineOrCancel],
      dismissed: cancel,
    });
  }

  function askModel(params: Json): Promise<Json | undefined> {
    const area = h("textarea", { id: newId(), rows: 4 });
    const messages = objects(params.messages).map(({ role, content }) =>
      h("div.turn", {}, h("strong", {}, serverText(role)), ...show.contents(content))
    );
    const system = text(params.systemPrompt);
    return ask({
      title: "The server requests sampling",
      body: [
        from(),
        system === undefined ? undefined : h("div.turn", {}, h("strong", {}, "system"), show.long(system)),
        ...messages,
        h(
          "p.muted",
          {},
          escapeInvisible(`Up to ${params.maxTokens} tokens. The inspector has no model: write the response yourself.`),
        ),
        h("div.field", {}, h("div.labels", {}, h("label", { for: area.id }, "Answer")), area),
        show.fold("Full request", () => show.json(params)),
      ],
      answers: [
        ["Answer", () => ({
          role: "assistant",
          content: { type: "text", text: area.value },
          model: "inspector",
          stopReason: "endTurn",
        })],
        ["End the call", () => undefined],
      ],
      dismissed: undefined,
    });
  }

  function askRoots(): Promise<Json | undefined> {
    const area = h("textarea.code", {
      id: newId(),
      rows: 3,
      placeholder: "file:///home/me/project",
      spellcheck: "false",
    });
    const toRoots = () => ({
      roots: area.value.split("\n").map((line) => line.trim()).filter(Boolean).map((uri) => ({ uri })),
    });
    return ask({
      title: "The server requests roots",
      body: [
        from(),
        h(
          "div.field",
          {},
          h(
            "div.labels",
            {},
            h("label", { for: area.id }, "Roots"),
            h("span.type", {}, "one file:// URI per line"),
          ),
          area,
        ),
      ],
      answers: [["Answer", toRoots], ["End the call", () => undefined]],
      dismissed: undefined,
    });
  }

  return (method, params, signal) => {
    const next = () => {
      if (signal?.aborted) return Promise.resolve(undefined);
      withdrawal = signal;
      if (method === "elicitation/create") return params.mode === "url" ? askUrl(params) : askForm(params);
      if (method === "sampling/createMessage") return askModel(params);
      return method === "roots/list" ? askRoots() : Promise.resolve(undefined);
    };
    const answer = last.then(next);
    last = answer;
    return answer;
  };
}
