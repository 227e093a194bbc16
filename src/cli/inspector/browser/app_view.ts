/**
 * Shows the app of a tool, with the messages between app and page.
 */
import { AppHost, findAppUri, readCsp, type ShownCall } from "./app_host.ts";
import { sandbox } from "./config.ts";
import { showError, showNothing, showPlainJson, showText } from "./content_view.ts";
import { h, makeButton, makeLink, serverText } from "./dom.ts";
import { type Json, parseObject, toCompact, toObject, toObjects } from "./json.ts";
import { send } from "./rpc_client.ts";

const HTML = "text/html;profile=mcp-app";
const MAX_ROWS = 200;
/** Maximum number of characters that are shown from a message. */
const MAX_CHARACTERS = 20_000;

export class AppView {
  readonly element: HTMLElement;
  readonly #call: ShownCall;
  readonly #links = h("div.links", { role: "status" });
  readonly #rows = h("ol.frames", { "aria-label": "Messages of the app" });
  readonly #count = h("span.count", "0");
  readonly #place = h("div");
  #host: AppHost | undefined;
  #isClosed = false;
  #messages = 0;

  constructor(uri: string, call: ShownCall) {
    this.#call = call;
    const close = makeButton("button.quiet.small", "Close app", () => void this.close());
    this.element = h(
      "div.block",
      h("div.head", h("h3", "App"), h("code.grow", serverText(uri)), close),
      this.#place,
      this.#links,
      h("details.fold", h("summary", "Messages of the app ", this.#count), this.#rows),
    );
    void this.#load(uri);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#host?.close();
    this.#place.replaceChildren(showNothing("The app is closed."));
  }

  async #load(uri: string): Promise<void> {
    if (sandbox === undefined) return this.#say("The inspector cannot show apps, because it has no second port.");
    const outcome = await send("resources/read", { uri });
    if (this.#isClosed || outcome.kind === "stopped") return;
    if (outcome.kind === "error") return this.#place.replaceChildren(showError(outcome));
    const contents = toObjects(outcome.result.contents).find((each) => each.uri === uri) ?? {};
    const html = readHtml(contents);
    if (contents.mimeType !== HTML) {
      return this.#say(`The resource is not an app, because its media type is not ${HTML}.`);
    }
    if (html === undefined) return this.#say("The resource has no HTML document.");
    const csp = readCsp(contents);
    this.#host = new AppHost(html, csp, this.#call, {
      onMessage: (way, message, text) => this.#showMessage(way, message, text),
      onLink: (url) => this.#links.replaceChildren("The app asks to open ", makeLink(url, serverText(url))),
      onFlood: () =>
        this.#say(
          "The inspector removed the app, because the app sent too many messages or a message that is too large.",
        ),
    });
    this.#place.replaceChildren(this.#host.frame);
    const permissions = Object.keys(toObject(toObject(toObject(contents._meta).ui).permissions));
    const facts = [
      ...Object.entries(csp).map(([name, origins]) => `${name}: ${[origins].flat().join(" ")}`),
      ...permissions.length ? [`permissions that the inspector does not grant: ${permissions.join(" ")}`] : [],
    ];
    if (facts.length) this.#place.append(h("p.muted", serverText(facts.join(" · "))));
  }

  #say(words: string): void {
    this.#place.replaceChildren(showNothing(words));
  }

  #showMessage(way: "sent" | "received", { method, params, result, error }: Json, text: string): void {
    this.#count.textContent = String(++this.#messages);
    const title = typeof method === "string" ? method : error === undefined ? "result" : "error";
    const summary = h(
      "summary",
      h("span.way", { role: "img", "aria-label": way }, way === "sent" ? "→" : "←"),
      h("span.method", serverText(title.slice(0, 200))),
      h("span.note", serverText(toCompact(params ?? result ?? error).slice(0, 200))),
    );
    const row = h("details", summary);
    // Keep the message as text, because a message from an app may contain any value.
    const isCut = text.length > MAX_CHARACTERS;
    const shown = isCut ? text.slice(0, MAX_CHARACTERS) : text;
    row.addEventListener("toggle", () => {
      if (!row.open || row.childElementCount > 1) return;
      row.append(isCut ? showText(`${shown} …`) : showPlainJson(parseObject(shown)));
    });
    this.#rows.append(h(error === undefined ? "li" : "li.error", row));
    if (this.#rows.childElementCount > MAX_ROWS) this.#rows.firstElementChild?.remove();
  }
}

/** Creates the view of the app that belongs to a tool. Returns `undefined` if the tool has no app. */
export function makeAppView(call: ShownCall): AppView | undefined {
  const uri = findAppUri(call.tool);
  return uri === undefined ? undefined : new AppView(uri, call);
}

function readHtml({ text, blob }: Json): string | undefined {
  if (typeof text === "string") return text;
  if (typeof blob !== "string") return;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(blob), (c) => c.charCodeAt(0)));
  } catch {
    return;
  }
}
