/**
 * Fields for the arguments of a prompt and the variables of a URI template, with suggestions from the server.
 *
 * @see specification/2026-07-28/server/utilities/completion
 * @module
 */
import type { Dom, Element, UiEvent } from "./dom.ts";
import type { JsonTools } from "./json.ts";
import type { Wire } from "./wire.ts";

/** One argument, always a text. */
export interface Argument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly isRequired: boolean;
}

/** What the suggestions are for: a prompt or a template. `undefined` if the server has none. */
export type Reference = Readonly<Record<string, string>> | undefined;

/** Fields for arguments. */
export interface ArgumentFields {
  readonly element: Element;
  /** What is filled in, without what is empty and may be. */
  read(): Readonly<Record<string, string>>;
}

/** What the fields are for. */
export interface ArgumentOptions {
  readonly reference: Reference;
  /** Called when something is typed or chosen. */
  readonly changed?: () => void;
}

/** Makes fields. */
export type MakeArguments = (list: readonly Argument[], options: ArgumentOptions) => ArgumentFields;

/** What the fields are built with. */
export interface ArgumentParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly wire: Wire;
}

/** Makes the maker of fields. */
export function createArguments({ dom, json: { isObject }, wire }: ArgumentParts): MakeArguments {
  const { h, say, visible, newId } = dom;
  const pauseMs = 120; // between two keys of a person who types
  const most = 300; // fields: a browser is slow with more

  return (all, { reference, changed }) => {
    const list = all.slice(0, most);
    const inputs = list.map((argument) => [argument, toInput(argument)] as const);

    function read(): Readonly<Record<string, string>> {
      const filled = inputs.filter(([{ isRequired }, input]) => input.value || isRequired);
      return Object.fromEntries(filled.map(([{ name }, input]) => [name, input.value]));
    }

    function toField({ name, title, description, isRequired }: Argument, input: Element): Element {
      const hint = h("p.hint", { id: newId() }, say(description ?? ""));
      if (description) input.setAttribute("aria-describedby", hint.id);
      const label = h("label", { for: input.id }, h("span.name", {}, say(name)));
      if (title && title !== name) label.append(" ", h("span.title", {}, say(title)));
      const labels = h("div.labels", {}, label, isRequired && h("span.required", {}, "required"));
      return h("div.field", {}, labels, reference ? suggest(input, name) : input, description ? hint : undefined);
    }

    function toInput({ isRequired }: Argument): Element {
      const input = h("input", { id: newId(), autocomplete: "off", spellcheck: "false" });
      if (isRequired) input.setAttribute("aria-required", "true");
      input.addEventListener("input", () => changed?.());
      return input;
    }

    /** An input under which suggestions open. */
    function suggest(input: Element, name: string): Element {
      const options = h("ul.options", {
        id: newId(),
        role: "listbox",
        "aria-label": visible(`Suggestions for ${name}`),
      });
      let values: readonly string[] = [];
      let active = -1;
      let timer: ReturnType<typeof setTimeout> | undefined;
      let asking = new AbortController();

      async function ask(): Promise<void> {
        // A second list would come under the hand of a person who is choosing from the first.
        clearTimeout(timer);
        asking.abort();
        const { signal } = asking = new AbortController();
        const others = Object.entries(read()).filter(([other, value]) => other !== name && value);
        const outcome = await wire.send("completion/complete", {
          ref: reference,
          argument: { name, value: input.value },
          ...others.length ? { context: { arguments: Object.fromEntries(others) } } : {},
        }, { signal });
        if (signal.aborted) return;
        const { completion } = outcome.kind === "result" ? outcome.result : {};
        const { values: found, hasMore } = isObject(completion) ? completion : {};
        show(Array.isArray(found) ? found.filter((value) => typeof value === "string") : [], hasMore === true);
      }

      function show(found: readonly string[], hasMore: boolean): void {
        values = found;
        const rows = values.map((value, at) => {
          const row = h("li", { role: "option", id: newId(), "aria-selected": "false" }, say(value));
          // Before the click, which would come after the input has lost the focus and the list is gone.
          row.addEventListener("mousedown", (event) => {
            event.preventDefault();
            pick(at);
          });
          return row;
        });
        options.replaceChildren(...rows, ...hasMore ? [h("li.muted", { role: "presentation" }, "… and more")] : []);
        options.hidden = !values.length;
        input.setAttribute("aria-expanded", String(values.length > 0));
        move(-1);
      }

      function close(): void {
        clearTimeout(timer);
        asking.abort();
        show([], false);
      }

      function pick(at: number): void {
        input.value = values[at];
        changed?.();
        close();
      }

      function move(to: number): void {
        active = to;
        input.removeAttribute("aria-activedescendant");
        let at = 0;
        for (const row of options.querySelectorAll("[role=option]")) {
          const isActive = at++ === active;
          row.setAttribute("aria-selected", String(isActive));
          if (!isActive) continue;
          input.setAttribute("aria-activedescendant", row.id);
          row.scrollIntoView({ block: "nearest" });
        }
      }

      function press(event: UiEvent): void {
        const { key } = event;
        const count = values.length;
        if (key === "ArrowDown" && !count) ask();
        else if (key === "ArrowDown") move((active + 1) % count);
        else if (key === "ArrowUp" && count) move(active < 0 ? count - 1 : active - 1);
        else if (key === "Enter" && active >= 0) pick(active);
        else if (key === "Escape" && count) close();
        else return;
        event.preventDefault();
      }

      const later = () => {
        clearTimeout(timer);
        timer = setTimeout(ask, pauseMs);
      };
      for (const [attribute, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list" })) {
        input.setAttribute(attribute, value);
      }
      input.setAttribute("aria-controls", options.id);
      input.addEventListener("input", later);
      input.addEventListener("focus", () => input.value || later());
      input.addEventListener("blur", close);
      input.addEventListener("keydown", press);
      show([], false);
      return h("div.combo", {}, input, options);
    }

    const element = h("div.fields", {}, ...inputs.map(([argument, input]) => toField(argument, input)));
    if (all.length > most) element.append(h("p.muted", {}, `Only the first ${most} of ${all.length} have a field.`));
    return { element, read };
  };
}
