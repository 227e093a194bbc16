/**
 * Fields for the arguments of a prompt and the variables of a URI template, with suggestions from the server.
 *
 * @see specification/2026-07-28/server/utilities/completion
 */
import { escapeInvisible, h, newId, serverText, setAttributes } from "./dom.ts";
import { type Json, toObject } from "./json.ts";
import { send } from "./rpc_client.ts";

/** An argument. Its value is always text. */
export interface Argument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly isRequired: boolean;
}

export interface ArgumentFields {
  readonly element: HTMLElement;
  /** Returns the values by name. Optional arguments without a value are omitted. */
  read(): Readonly<Record<string, string>>;
  /** Replaces all values. */
  fill(values: Json): void;
}

export interface ArgumentOptions {
  /** The prompt or template. `undefined` if the server does not support completion. */
  readonly reference: Json | undefined;
  readonly onChange?: () => void;
}

/** Milliseconds between the last key press and the request for suggestions. */
const DELAY_MS = 120;
/** Maximum number of fields, because more fields would make the page slow. */
const MAX_ARGUMENTS = 300;

/** Creates a text field for each argument, up to `MAX_ARGUMENTS` fields. */
export function makeArgumentFields(all: readonly Argument[], options: ArgumentOptions): ArgumentFields {
  const { reference, onChange } = options;
  const inputs = all.slice(0, MAX_ARGUMENTS).map((argument) => {
    const input = h("input", { id: newId(), autocomplete: "off", spellcheck: "false" });
    if (argument.isRequired) input.ariaRequired = "true";
    if (onChange) input.addEventListener("input", onChange);
    return [argument, input] as const;
  });

  function read(): Readonly<Record<string, string>> {
    const filled = inputs.filter(([{ isRequired }, input]) => input.value || isRequired);
    return Object.fromEntries(filled.map(([{ name }, input]) => [name, input.value]));
  }

  function fill(values: Json): void {
    for (const [{ name }, input] of inputs) input.value = Object.hasOwn(values, name) ? String(values[name]) : "";
    onChange?.();
  }

  function toField({ name, title, description, isRequired }: Argument, input: HTMLInputElement): HTMLElement {
    const hint = description ? h("p.hint", { id: newId() }, serverText(description)) : undefined;
    if (hint) setAttributes(input, { "aria-describedby": hint.id });
    const label = h("label", { for: input.id }, h("span.name", serverText(name)));
    if (title && title !== name) label.append(" ", h("span.title", serverText(title)));
    const ask = async (signal: AbortSignal) => {
      const others = Object.entries(read()).filter(([other, value]) => other !== name && value);
      const outcome = await send("completion/complete", {
        ref: reference,
        argument: { name, value: input.value },
        ...others.length ? { context: { arguments: Object.fromEntries(others) } } : {},
      }, { signal });
      return toObject(outcome.kind === "result" ? outcome.result.completion : undefined);
    };
    const control = reference ? new Combobox(input, name, ask).element : input;
    return h("div.field", h("div.labels", label, isRequired && h("span.required", "required")), control, hint);
  }

  const element = h("div.fields", ...inputs.map(([argument, input]) => toField(argument, input)));
  if (all.length > MAX_ARGUMENTS) {
    element.append(h("p.muted", `Only the first ${MAX_ARGUMENTS} of ${all.length} arguments are shown.`));
  }
  return { element, read, fill };
}

class Combobox {
  readonly element: HTMLElement;
  readonly #input: HTMLInputElement;
  readonly #ask: (signal: AbortSignal) => Promise<Json>;
  readonly #options: HTMLElement;
  #values: readonly string[] = [];
  #active = -1;
  #timer: number | undefined;
  #asking = new AbortController();

  /** Adds a list of suggestions to an input. `ask` requests the suggestions from the server. */
  constructor(input: HTMLInputElement, name: string, ask: (signal: AbortSignal) => Promise<Json>) {
    const label = escapeInvisible(`Suggestions for ${name}`);
    this.#input = input;
    this.#ask = ask;
    this.#options = h("ul.options", { id: newId(), role: "listbox", "aria-label": label });
    this.element = h("div.combo", input, this.#options);
    setAttributes(input, { role: "combobox", "aria-autocomplete": "list", "aria-controls": this.#options.id });
    input.addEventListener("input", () => this.#askLater());
    input.addEventListener("focus", () => input.value || this.#askLater());
    input.addEventListener("blur", () => this.#close());
    input.addEventListener("keydown", (event) => this.#press(event));
    this.#show([], false);
  }

  #askLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#askNow(), DELAY_MS);
  }

  async #askNow(): Promise<void> {
    this.#stop();
    const { signal } = this.#asking = new AbortController();
    const { values, hasMore } = await this.#ask(signal);
    if (signal.aborted) return;
    const found = Array.isArray(values) ? values.filter((value) => typeof value === "string") : [];
    this.#show(found, hasMore === true);
  }

  // Cancel a pending request, because new suggestions must not replace the list from which the user is choosing.
  #stop(): void {
    clearTimeout(this.#timer);
    this.#asking.abort();
  }

  #close(): void {
    this.#stop();
    this.#show([], false);
  }

  #show(values: readonly string[], hasMore: boolean): void {
    this.#values = values;
    const rows = values.map((value, at) => {
      const row = h("li", { role: "option", id: newId(), "aria-selected": "false" }, serverText(value));
      // Use `mousedown`, because it fires before the input loses the focus and closes the list.
      row.addEventListener("mousedown", (event) => {
        event.preventDefault();
        this.#pick(at);
      });
      return row;
    });
    this.#options.replaceChildren(...rows, ...hasMore ? [h("li.muted", { role: "presentation" }, "… and more")] : []);
    this.#options.hidden = !values.length;
    this.#input.ariaExpanded = String(values.length > 0);
    this.#move(-1);
  }

  #pick(at: number): void {
    this.#input.value = this.#values[at];
    this.#input.dispatchEvent(new Event("input"));
    this.#close();
  }

  #move(to: number): void {
    this.#active = to;
    this.#input.removeAttribute("aria-activedescendant");
    this.#options.querySelectorAll("[role=option]").forEach((row, at) => {
      row.ariaSelected = String(at === to);
      if (at !== to) return;
      setAttributes(this.#input, { "aria-activedescendant": row.id });
      row.scrollIntoView({ block: "nearest" });
    });
  }

  #choose(at: number): void {
    this.#stop();
    this.#move(at);
  }

  #press(event: KeyboardEvent): void {
    const { key } = event;
    const count = this.#values.length;
    if (key === "ArrowDown" && !count) void this.#askNow();
    else if (key === "ArrowDown") this.#choose((this.#active + 1) % count);
    else if (key === "ArrowUp" && count) this.#choose(this.#active < 0 ? count - 1 : this.#active - 1);
    else if (key === "Enter" && this.#active >= 0) this.#pick(this.#active);
    else if (key === "Escape" && count) this.#close();
    else return;
    event.preventDefault();
  }
}
