/**
 * The dialog for choosing a server and a protocol revision, and for entering a token and headers.
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
import { type Attributes, h, makeButton, makeLabelledField, newId, openDialog, serverText } from "./dom.ts";

const MAX_HEADERS = 50;
const REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const PLAIN = { autocomplete: "off", spellcheck: "false" };

/** Opens the dialog. `named` is the server named on the command line, if any. */
export function openConnectionDialog(named: NamedServer | undefined): void {
  const places = makePlaceFields(named, showSecrets);
  const secrets = makeSecretFields();
  const problem = h("p.problem", { role: "alert" });
  const noHeaders = h("p.muted", "A server that runs as a command takes no token or headers.");
  const heading = h("h2", "Connection");
  const form = h(
    "form",
    { method: "dialog", novalidate: true, autocomplete: "off" },
    heading,
    places.element,
    noHeaders,
    secrets.element,
    problem,
    h(
      "div.actions",
      h("button.primary", { type: "submit" }, "Connect"),
      makeButton("button", "Cancel", close),
      makeButton("button.quiet", "Forget all tokens and headers", forget),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wrong = [...places.listInputs(), ...secrets.listInputs()].find(({ validity }) => !validity.valid);
    problem.textContent = wrong?.title ?? "";
    if (wrong) return wrong.focus();
    saveChoice(places.read(), secrets.read());
    // Reload the page, so that the page never mixes data from two servers.
    history.replaceState(null, "", "#");
    location.reload();
  });
  showSecrets();
  const dialog = openDialog(form, heading, close);
  places.focus();

  /** Shows the token and headers for the chosen server only. */
  function showSecrets(): void {
    const place = places.read();
    secrets.show(getSecrets(place));
    problem.textContent = "";
    noHeaders.hidden = place.kind !== "named" || named?.hasHeaders !== false;
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

/** Creates the fields for the revision and for the server: the default server, or the server at a URL. */
function makePlaceFields(named: NamedServer | undefined, change: () => void) {
  const usual = h("input", { type: "radio", name: "server", change });
  const other = h("input", { type: "radio", name: "server", change });
  const url = h("input.code", {
    ...PLAIN,
    type: "url",
    required: true,
    pattern: "[hH][tT][tT][pP][sS]?://.*",
    title: "Enter a URL that begins with http:// or https://.",
    placeholder: "https://mcp.example.com/mcp",
    "aria-label": "URL of the server",
    focus: () => other.checked || other.click(),
    change,
  });
  const newest = h("option", { value: "" }, "The newest revision that the server supports");
  const revision = h("select", newest, ...REVISIONS.map((revision) => h("option", revision)));
  (place.kind === "url" ? other : usual).checked = true;
  url.value = place.url;
  revision.value = place.revision;
  // Disable these fields if the page has no key. Without a key, the page can only use its own server, in the configured
  // revision.
  other.disabled = url.disabled = revision.disabled = key === undefined;
  const origin = endpoint === undefined ? "From the command line: " : "This server: ";
  const hint = "To connect to another server, open the link that the terminal shows. The link contains the key.";
  const element = h(
    "fieldset.field.places",
    h("legend", "Server"),
    h("label.place", usual, h("span", origin, h("code", serverText(ownUrl ?? named?.name ?? "")))),
    h("label.place", other, h("span", "Another server")),
    url,
    makeLabelledField("Protocol revision", revision),
    key === undefined && h("p.hint", hint),
  );

  function read(): Place {
    return other.checked
      ? { kind: "url", url: url.value, revision: revision.value }
      : { kind: usualKind, url: "", revision: revision.value };
  }

  const listInputs = () => other.checked ? [url] : [];
  return { element, read, listInputs, focus: () => (other.checked ? url : usual).focus() };
}

function makeSecretFields() {
  const token = makeSecretField("Token", {
    id: newId(),
    pattern: "[\\t\\x20-\\x7e]*",
    title: "The token contains characters that are not allowed in a header.",
  });
  const rows = h("ul.rows");
  const adder = makeButton("button.small", "Add a header", () => addHeader("", "").focus());
  const note =
    "The inspector stores the token and headers for this server until you close this tab. They never appear in a " +
    "URL, and the log masks them.";
  const tokenLabel = h("label", { for: token.input.id }, "Token");
  const element = h(
    "div.fields",
    h("div.field", h("div.labels", tokenLabel, h("span.type", "sent as Authorization: Bearer …")), token.element),
    h(
      "div.field",
      { role: "group", "aria-label": "Headers" },
      h("div.labels", h("span.label", "Headers")),
      rows,
      adder,
    ),
    h("p.hint", note),
  );

  /** Adds a row for the name and the value of a header. Returns the field for the name. */
  function addHeader(name: string, value: string): HTMLInputElement {
    const title = "This is not a valid header name or value.";
    const pattern = "[\\w!#$%&'*+.^`\\|~\\-]+";
    const label = "Name of a header";
    const input = h("input.code", { ...PLAIN, pattern, title, "aria-label": label, placeholder: "name" });
    const secret = makeSecretField("Value of a header", { pattern: "[\\t\\x20-\\x7e\\x80-\\xff]*", title });
    input.value = name;
    secret.input.value = value;
    const remove = makeButton("button.quiet.small", "×", () => {
      row.remove();
      adder.focus();
    });
    remove.ariaLabel = "Remove this header";
    const row = h("li.header", input, secret.element, remove);
    if (rows.childElementCount < MAX_HEADERS) rows.append(row);
    return input;
  }

  function show(secrets: Secrets): void {
    token.input.value = secrets.token;
    rows.replaceChildren();
    for (const [name, value] of secrets.headers) addHeader(name, value);
  }

  /** Trims the values of all inputs, requires a name for each header with a value, and returns the inputs. */
  function listInputs(): readonly HTMLInputElement[] {
    const inputs = [...element.querySelectorAll("input")];
    for (const input of inputs) input.value = input.value.trim();
    for (const [name, value] of listRows()) name.required = value.value !== "";
    return inputs;
  }

  function listRows(): readonly HTMLInputElement[][] {
    return [...rows.children].map((row) => [...row.querySelectorAll("input")]);
  }

  function read(): Secrets {
    const headers = listRows().map(([name, value]) => [name.value, value.value] as const);
    return { token: token.input.value, headers: headers.filter(([name]) => name) };
  }

  return { element, show, listInputs, read };
}

/** Creates a password field with a button that reveals the value. */
function makeSecretField(label: string, attributes: Attributes) {
  const input = h("input.code", { ...PLAIN, ...attributes, type: "password", "aria-label": label });
  const eye = makeButton("button.quiet.small", "Show", () => {
    const isShown = input.type === "text";
    input.type = isShown ? "password" : "text";
    eye.ariaPressed = String(!isShown);
  });
  eye.ariaPressed = "false";
  eye.ariaLabel = `Show: ${label}`;
  return { element: h("div.secret", input, eye), input };
}
