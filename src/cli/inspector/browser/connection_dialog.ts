/**
 * The dialog to choose a server and a protocol revision, and to enter a token and headers.
 *
 * @module
 */
import { endpoint, type NamedServer, ownUrl } from "./config.ts";
import {
  forgetSecrets,
  getSecrets,
  key,
  type Place,
  place,
  saveChoice,
  type Secrets,
  usualKind,
} from "./credentials.ts";
import { escapeInvisible, h, isWebUrl, makeButton, makeField, newId, openDialog, serverText } from "./dom.ts";

const MAX_HEADERS = 50;
const REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** Opens the dialog. `named` is the server of the command line, if there is one. */
export function openConnectionDialog(named: NamedServer | undefined): void {
  const choice = new PlaceChoice(named, showSecrets);
  const secrets = new SecretFields();
  const heading = h("h2", "Connection");
  const noHeaders = h("p.muted", "A command takes no token or headers.");
  const form = h(
    "form",
    { method: "dialog", novalidate: true, autocomplete: "off" },
    heading,
    choice.element,
    noHeaders,
    secrets.element,
    h(
      "div.actions",
      h("button.primary", { type: "submit" }, "Connect"),
      makeButton("button", "Cancel", close),
      makeButton("button.quiet", "Forget all tokens and headers", forget),
    ),
  );
  showSecrets();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const entered = choice.check() ? secrets.read() : undefined;
    if (!entered) return;
    saveChoice(choice.place, entered);
    // Reloading keeps the data of two servers apart.
    history.replaceState(null, "", "#");
    location.reload();
  });
  const dialog = openDialog(form, heading, close);
  choice.focus();

  /** Shows the token and headers of the chosen server only. */
  function showSecrets(): void {
    secrets.show(getSecrets(choice.place));
    noHeaders.hidden = choice.place.kind !== "named" || named?.hasHeaders !== false;
    secrets.element.hidden = !noHeaders.hidden;
  }

  function close(): void {
    dialog.close();
  }

  function forget(): void {
    forgetSecrets();
    showSecrets();
  }
}

/** The choice between the usual server and a URL, and of the revision. */
class PlaceChoice {
  readonly element: HTMLElement;
  readonly #usual: HTMLInputElement;
  readonly #other: HTMLInputElement;
  readonly #url = h("input.code", {
    type: "url",
    placeholder: "https://mcp.example.com/mcp",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "URL of the server",
  });
  readonly #revision = h(
    "select",
    h("option", { value: "" }, "The newest that the server supports"),
    ...REVISIONS.map((revision) => h("option", revision)),
  );
  readonly #problem = h("p.problem", { role: "alert" });

  constructor(named: NamedServer | undefined, onChange: () => void) {
    const group = newId();
    const change = () => {
      this.#problem.textContent = "";
      onChange();
    };
    this.#usual = h("input", { type: "radio", name: group, value: usualKind, change });
    this.#other = h("input", { type: "radio", name: group, value: "url", change });
    (place.kind === "url" ? this.#other : this.#usual).checked = true;
    this.#url.value = place.url;
    this.#url.addEventListener("change", change);
    this.#url.addEventListener("focus", () => {
      if (this.#other.checked) return;
      this.#other.checked = true;
      change();
    });
    this.#revision.value = place.revision;
    // Without the key, the page can only talk to its own server, in its own revision.
    this.#other.disabled = this.#url.disabled = this.#revision.disabled = key === undefined;
    const origin = endpoint === undefined ? "From the command line: " : "This server: ";
    const hint = "To connect to another server, open the link that the terminal shows. It contains the key.";
    this.element = h(
      "fieldset.field.places",
      h("legend", "Server"),
      h("label.place", this.#usual, h("span", origin, h("code", serverText(ownUrl ?? named?.name ?? "")))),
      h("label.place", this.#other, h("span", "Another server")),
      this.#url,
      this.#problem,
      makeField("Protocol revision", this.#revision),
      key === undefined && h("p.hint", hint),
    );
  }

  get place(): Place {
    const revision = this.#revision.value;
    return this.#other.checked
      ? { kind: "url", url: this.#url.value.trim(), revision }
      : { kind: usualKind, url: "", revision };
  }

  /** Whether the place can be used. Shows the problem if not. */
  check(): boolean {
    const { kind, url } = this.place;
    const isValid = kind !== "url" || isWebUrl(url);
    this.#problem.textContent = isValid ? "" : "Enter a URL that begins with http:// or https://.";
    if (!isValid) this.#url.focus();
    return isValid;
  }

  focus(): void {
    (place.kind === "url" ? this.#url : this.#usual).focus();
  }
}

/** The fields for a token and headers. */
class SecretFields {
  readonly element: HTMLElement;
  readonly #token = makeSecretField("Token");
  readonly #rows = h("ul.rows");
  readonly #adder = makeButton("button.small", "Add a header", () => this.#addRow("", "").focus());
  readonly #problem = h("p.problem", { role: "alert" });

  constructor() {
    const hint = "Stored for this server in this tab until you close it. Never part of a URL, and masked in the log.";
    this.#token.input.id = newId();
    const label = h("label", { for: this.#token.input.id }, "Token");
    this.element = h(
      "div.fields",
      h(
        "div.field",
        h("div.labels", label, h("span.type", "sent as Authorization: Bearer …")),
        this.#token.element,
      ),
      h(
        "div.field",
        { role: "group", "aria-label": "Headers" },
        h("div.labels", h("span.label", "Headers")),
        this.#rows,
        this.#adder,
        this.#problem,
      ),
      h("p.hint", hint),
    );
  }

  show({ token, headers }: Secrets): void {
    this.#token.input.value = token;
    this.#rows.replaceChildren();
    for (const [name, value] of headers) this.#addRow(name, value);
    this.#problem.textContent = "";
  }

  /** Returns `undefined` if something cannot be sent, and shows the problem. */
  read(): Secrets | undefined {
    const headers = [...this.#rows.children].map((row) => {
      const [name, value] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
      return [name, value] as const;
    }).filter(([name, value]) => name || value);
    const token = this.#token.input.value;
    const wrong = headers.find(([name, value]) => !isHeader(name, value));
    const isText = !/[^\t\x20-\x7e]/.test(token);
    this.#problem.textContent = !isText
      ? "The token has characters that are not allowed in a header."
      : wrong
      ? `This is not a valid header name or value: ${escapeInvisible(wrong[0]) || "(no name)"}`
      : "";
    return wrong || !isText ? undefined : { token: token.trim(), headers };
  }

  /** Adds a row for the name and the value of a header. Returns the field of the name. */
  #addRow(name: string, value: string): HTMLInputElement {
    const attributes = { placeholder: "name", autocomplete: "off", spellcheck: "false" };
    const input = h("input.code", { "aria-label": "Name of a header", ...attributes });
    const secret = makeSecretField("Value of a header");
    input.value = name;
    secret.input.value = value;
    const remove = makeButton("button.quiet.small", "×", () => {
      row.remove();
      this.#adder.focus();
    });
    remove.ariaLabel = "Remove this header";
    const row = h("li.header", input, secret.element, remove);
    if (this.#rows.childElementCount < MAX_HEADERS) this.#rows.append(row);
    return input;
  }
}

function isHeader(name: string, value: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && !/[^\t\x20-\x7e\x80-\xff]/.test(value);
}

/** A password field with a button that shows its value. */
function makeSecretField(label: string): { readonly element: HTMLElement; readonly input: HTMLInputElement } {
  const input = h("input.code", { type: "password", autocomplete: "off", spellcheck: "false", "aria-label": label });
  const eye = makeButton("button.quiet.small", "Show", () => {
    const isShown = input.type === "text";
    input.type = isShown ? "password" : "text";
    eye.ariaPressed = String(!isShown);
  });
  eye.ariaPressed = "false";
  eye.ariaLabel = `Show: ${label}`;
  return { element: h("div.secret", input, eye), input };
}
