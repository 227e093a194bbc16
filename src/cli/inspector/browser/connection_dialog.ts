/**
 * The dialog to choose a server, and to enter a token and headers for it.
 *
 * @module
 */
import type { Credentials, Place, Secrets } from "./credentials.ts";
import type { Browser, Dom, Element, UiEvent } from "./dom.ts";

/** The server named on the command line. */
export interface NamedServer {
  readonly name: string;
  /** Whether requests to it can have headers. */
  readonly hasHeaders: boolean;
}

/** Dependencies. */
export interface ConnectionDialogParts {
  readonly dom: Dom;
  readonly access: Credentials;
  /** The URL of the server that serves the page, if there is one. */
  readonly own: string | undefined;
  readonly named: NamedServer | undefined;
}

/** Creates the dialog. Returns a function that opens it. */
export function createConnectionDialog(
  browser: Browser,
  { dom, access, own, named }: ConnectionDialogParts,
): () => void {
  const { document, location, history } = browser;
  const { h, serverText, escapeInvisible, newId } = dom;
  const maxHeaders = 50;

  /** The place of the server without a URL. */
  const usual: Place = { kind: own === undefined ? "named" : "own" };

  function open(): void {
    const before = document.activeElement;
    const heading = h("h2", { id: newId() }, "Connection");
    const choice = createPlaceChoice(showSecrets);
    const secrets = createSecretFields();
    const noHeaders = h("p.muted", {}, "A command takes no token or headers.");
    const form = h(
      "form",
      { method: "dialog", novalidate: true, autocomplete: "off" },
      heading,
      choice.element,
      noHeaders,
      secrets.element,
      h(
        "div.actions",
        {},
        h("button.primary", { type: "submit" }, "Connect"),
        h("button", { type: "button", click: close }, "Cancel"),
        h("button.quiet", { type: "button", click: forget }, "Forget all tokens and headers"),
      ),
    );
    const dialog = h("dialog", { "aria-labelledby": heading.id }, form);
    showSecrets();
    form.addEventListener("submit", submit);
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      close();
    });
    document.body.append(dialog);
    dialog.showModal();
    choice.focus();

    /** Shows the token and headers of the chosen server only. */
    function showSecrets(): void {
      const place = choice.read();
      secrets.show(access.getSecrets(place));
      const takesHeaders = place.kind !== "named" || named?.hasHeaders === true;
      secrets.element.hidden = !takesHeaders;
      noHeaders.hidden = takesHeaders;
      choice.clearProblem();
    }

    function submit(event: UiEvent): void {
      event.preventDefault();
      if (!choice.check()) return;
      const entered = secrets.read();
      if (!entered) return;
      access.save(choice.read(), entered);
      // Reloading keeps the data of two servers apart.
      history.replaceState(null, "", "#");
      location.reload();
    }

    function close(): void {
      dialog.close();
      dialog.remove();
      before?.focus();
    }

    function forget(): void {
      access.forget();
      showSecrets();
      secrets.show({ token: "", headers: [] });
    }
  }

  /** The choice between the usual server and a URL. */
  function createPlaceChoice(onChange: () => void) {
    const group = newId();
    const toRadio = (value: string) => h("input", { type: "radio", name: group, value, change: onChange });
    const [usualRadio, urlRadio] = [toRadio(usual.kind), toRadio("url")];
    const isUrl = access.place.kind === "url";
    (isUrl ? urlRadio : usualRadio).checked = true;
    const url = h("input.code", {
      id: newId(),
      type: "url",
      placeholder: "https://mcp.example.com/mcp",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": "URL of the server",
      change: onChange,
    });
    url.value = access.place.kind === "url" ? access.place.url : "";
    url.addEventListener("focus", () => {
      if (urlRadio.checked) return;
      urlRadio.checked = true;
      onChange();
    });
    if (access.key === undefined) urlRadio.disabled = url.disabled = true;
    const problem = h("p.problem", { role: "alert" });
    const read = (): Place => urlRadio.checked ? { kind: "url", url: url.value.trim() } : usual;
    const origin = own === undefined ? "From the command line: " : "This server: ";
    const name = h("code", {}, serverText(own ?? named?.name ?? ""));
    const element = h(
      "fieldset.field.places",
      {},
      h("legend", {}, "Server"),
      h("label.place", {}, usualRadio, h("span", {}, origin, name)),
      h("label.place", {}, urlRadio, h("span", {}, "Another server")),
      url,
      problem,
      access.key === undefined &&
        h("p.hint", {}, "To connect to another server, open the link that the terminal shows. It contains the key."),
    );

    /** Whether the place can be used. Shows the problem if not. */
    function check(): boolean {
      const place = read();
      const isValid = place.kind !== "url" || isWeb(place.url);
      problem.textContent = isValid ? "" : "Enter a URL that begins with http:// or https://.";
      if (!isValid) url.focus();
      return isValid;
    }

    return {
      element,
      read,
      check,
      clearProblem: () => void (problem.textContent = ""),
      focus: () => (isUrl ? url : usualRadio).focus(),
    };
  }

  /** The fields for a token and headers. */
  function createSecretFields() {
    const token = createSecretField("Token");
    token.input.id = newId();
    const rows = h("ul.rows");
    const adder = h("button.small", { type: "button", click: () => addRow("", "").focus() }, "Add a header");
    const problem = h("p.problem", { role: "alert" });
    const element = h(
      "div.fields",
      {},
      h(
        "div.field",
        {},
        h(
          "div.labels",
          {},
          h("label", { for: token.input.id }, "Token"),
          h("span.type", {}, "sent as Authorization: Bearer …"),
        ),
        token.element,
      ),
      h(
        "div.field",
        { role: "group", "aria-label": "Headers" },
        h("div.labels", {}, h("span.label", {}, "Headers")),
        rows,
        adder,
        problem,
      ),
      h(
        "p.hint",
        {},
        "Stored for this server in this tab until you close it. Never part of a URL, and masked in the log.",
      ),
    );

    function show(secrets: Secrets): void {
      token.input.value = secrets.token;
      rows.replaceChildren();
      for (const [header, value] of secrets.headers) addRow(header, value);
      problem.textContent = "";
    }

    function addRow(header: string, value: string): Element {
      const { row, input } = createHeaderRow(header, value, adder);
      if (rows.childElementCount < maxHeaders) rows.append(row);
      return input;
    }

    /** Returns `undefined` if something cannot be sent, and shows the problem. */
    function read(): Secrets | undefined {
      const headers = [...rows.querySelectorAll(".header")].map((row) => {
        const [header, value] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
        return [header, value] as const;
      }).filter(([header, value]) => header || value);
      const wrong = headers.find(([header, value]) =>
        !/^[\w!#$%&'*+.^`|~-]+$/.test(header) || /[^\t\x20-\x7e\x80-\xff]/.test(value)
      );
      problem.textContent = wrong
        ? `This is not a valid header name or value: ${escapeInvisible(wrong[0]) || "(no name)"}`
        : "";
      const isText = !/[^\t\x20-\x7e]/.test(token.input.value);
      if (!isText) problem.textContent = "The token has characters that are not allowed in a header.";
      return wrong || !isText ? undefined : { token: token.input.value.trim(), headers };
    }

    return { element, show, read };
  }

  /** The name and the value of a header. After the row is removed, `next` has the focus. */
  function createHeaderRow(header: string, value: string, next: Element) {
    const input = h("input.code", {
      "aria-label": "Name of a header",
      placeholder: "name",
      autocomplete: "off",
      spellcheck: "false",
    });
    input.value = header;
    const secret = createSecretField("Value of a header");
    secret.input.value = value;
    const row = h("li.header", {}, input, secret.element);
    const remove = h("button.quiet.small", { type: "button", "aria-label": "Remove this header" }, "×");
    remove.addEventListener("click", () => {
      row.remove();
      next.focus();
    });
    row.append(remove);
    return { row, input };
  }

  /** A password field with a button that shows its value. */
  function createSecretField(label: string): { readonly element: Element; readonly input: Element } {
    const input = h("input.code", { type: "password", autocomplete: "off", spellcheck: "false", "aria-label": label });
    const eye = h("button.quiet.small", {
      type: "button",
      "aria-pressed": "false",
      "aria-label": `Show: ${label}`,
      click: turn,
    }, "Show");
    function turn(): void {
      const isShown = input.getAttribute("type") === "text";
      input.setAttribute("type", isShown ? "password" : "text");
      eye.setAttribute("aria-pressed", String(!isShown));
    }
    return { element: h("div.secret", {}, input, eye), input };
  }

  function isWeb(address: string): boolean {
    return /^https?:\/\//i.test(address) && URL.canParse(address);
  }

  return open;
}
