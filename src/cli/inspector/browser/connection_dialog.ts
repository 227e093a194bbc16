/**
 * The dialog to choose a server, and to enter a token and headers for it.
 *
 * @module
 */
import type { Credentials, Place, Secrets } from "./credentials.ts";
import type { Browser, Dom, Element } from "./dom.ts";

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

  function open(): void {
    const before = document.activeElement;
    const heading = h("h2", { id: newId() }, "Connection");
    const group = newId();
    const usual: Place = { kind: own === undefined ? "named" : "own" };
    const toRadio = (value: string) => h("input", { type: "radio", name: group, value, change: load });
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
      change: load,
    });
    url.value = access.place.kind === "url" ? access.place.url : "";
    url.addEventListener("focus", () => {
      if (!urlRadio.checked) {
        urlRadio.checked = true;
        load();
      }
    });
    if (access.key === undefined) urlRadio.disabled = url.disabled = true;
    const urlProblem = h("p.problem", { role: "alert" });
    const token = toSecret("Token");
    token.input.id = newId();
    const rows = h("ul.rows");
    const adder = h("button.small", { type: "button", click: () => addRow("", "").focus() }, "Add a header");
    const headerProblem = h("p.problem", { role: "alert" });
    const noHeaders = h("p.muted", {}, "A command takes no token or headers.");
    const entry = h(
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
        headerProblem,
      ),
      h(
        "p.hint",
        {},
        "Stored for this server in this tab until you close it. Never part of a URL, and masked in the log.",
      ),
    );
    const name = own ?? named?.name ?? "";
    const form = h(
      "form",
      { method: "dialog", novalidate: true, autocomplete: "off" },
      heading,
      h(
        "fieldset.field.places",
        {},
        h("legend", {}, "Server"),
        h(
          "label.place",
          {},
          usualRadio,
          h(
            "span",
            {},
            own === undefined ? "From the command line: " : "This server: ",
            h("code", {}, serverText(name)),
          ),
        ),
        h("label.place", {}, urlRadio, h("span", {}, "Another server")),
        url,
        urlProblem,
        access.key === undefined &&
          h(
            "p.hint",
            {},
            "To connect to another server, open the link that the terminal shows. It contains the key.",
          ),
      ),
      noHeaders,
      entry,
      h(
        "div.actions",
        {},
        h("button.primary", { type: "submit" }, "Connect"),
        h("button", { type: "button", click: close }, "Cancel"),
        h("button.quiet", { type: "button", click: forget }, "Forget all tokens and headers"),
      ),
    );
    const dialog = h("dialog", { "aria-labelledby": heading.id }, form);
    load();

    function readPlace(): Place {
      return urlRadio.checked ? { kind: "url", url: url.value.trim() } : usual;
    }

    /** Shows the token and headers of the chosen server only. */
    function load(): void {
      const place = readPlace();
      const { token: kept, headers } = access.getSecrets(place);
      token.input.value = kept;
      rows.replaceChildren();
      for (const [header, value] of headers) addRow(header, value);
      const takesHeaders = place.kind !== "named" || named?.hasHeaders === true;
      entry.hidden = !takesHeaders;
      noHeaders.hidden = takesHeaders;
      urlProblem.textContent = headerProblem.textContent = "";
    }

    function addRow(header: string, value: string): Element {
      const input = h("input.code", {
        "aria-label": "Name of a header",
        placeholder: "name",
        autocomplete: "off",
        spellcheck: "false",
      });
      input.value = header;
      const secret = toSecret("Value of a header");
      secret.input.value = value;
      const row = h("li.header", {}, input, secret.element);
      const remove = h("button.quiet.small", { type: "button", "aria-label": "Remove this header" }, "×");
      remove.addEventListener("click", () => {
        row.remove();
        adder.focus();
      });
      row.append(remove);
      if (rows.childElementCount < maxHeaders) rows.append(row);
      return input;
    }

    /** A password field with a button that shows its value. */
    function toSecret(label: string): { readonly element: Element; readonly input: Element } {
      const input = h("input.code", {
        type: "password",
        autocomplete: "off",
        spellcheck: "false",
        "aria-label": label,
      });
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

    function readSecrets(): Secrets | undefined {
      const headers = [...rows.querySelectorAll(".header")].map((row) => {
        const [header, value] = [...row.querySelectorAll("input")].map((input) => input.value.trim());
        return [header, value] as const;
      }).filter(([header, value]) => header || value);
      const wrong = headers.find(([header, value]) =>
        !/^[\w!#$%&'*+.^`|~-]+$/.test(header) || /[^\t\x20-\x7e\x80-\xff]/.test(value)
      );
      headerProblem.textContent = wrong
        ? `This is not a valid header name or value: ${escapeInvisible(wrong[0]) || "(no name)"}`
        : "";
      const isText = !/[^\t\x20-\x7e]/.test(token.input.value);
      if (!isText) headerProblem.textContent = "The token has characters that are not allowed in a header.";
      return wrong || !isText ? undefined : { token: token.input.value.trim(), headers };
    }

    function close(): void {
      dialog.close();
      dialog.remove();
      before?.focus();
    }

    function forget(): void {
      access.forget();
      load();
      token.input.value = "";
      rows.replaceChildren();
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const place = readPlace();
      urlProblem.textContent = place.kind === "url" && !isWeb(place.url)
        ? "Enter a URL that begins with http:// or https://."
        : "";
      if (urlProblem.textContent) return url.focus();
      const secrets = readSecrets();
      if (!secrets) return;
      access.save(place, secrets);
      // Reloading keeps the data of two servers apart.
      history.replaceState(null, "", "#");
      location.reload();
    });
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      close();
    });
    document.body.append(dialog);
    dialog.showModal();
    (isUrl ? url : usualRadio).focus();
  }

  function isWeb(address: string): boolean {
    return /^https?:\/\//i.test(address) && URL.canParse(address);
  }

  return open;
}
