/**
 * Fields for the arguments of a prompt and the variables of a URI template, with suggestions from the server.
 *
 * @see specification/2026-07-28/server/utilities/completion
 * @module
 */
import type { Dom, Element, UiEvent } from "./dom.ts";
import type { JsonTools } from "./json_tools.ts";
import type { RpcClient } from "./rpc_client.ts";

/** An argument, which is always text. */
export interface Argument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly isRequired: boolean;
}

/** The prompt or template to complete; `undefined` if the server has no completions. */
export type Reference = Readonly<Record<string, string>> | undefined;

/** Fields for arguments. */
export interface ArgumentFields {
  readonly element: Element;
  /** The values, without empty optional ones. */
  read(): Readonly<Record<string, string>>;
}

/** Options of the fields. */
export interface ArgumentOptions {
  readonly reference: Reference;
  /** Called when a value changes. */
  readonly changed?: () => void;
}

/** Makes fields. */
export type MakeArguments = (list: readonly Argument[], options: ArgumentOptions) => ArgumentFields;

/** Dependencies. */
export interface ArgumentParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly wire: RpcClient;
}

/** Creates the factory. */
export function createArgumentFields({ dom, json: { isObject }, wire }: ArgumentParts): MakeArguments {
  const { h, serverText, escapeInvisible, newId } = dom;
  const delayMs = 120; // without a key press before suggestions are requested
  const maxArguments = 300; // fields, because more make the page slow

  return (all, { reference, changed }) => {
    const list = all.slice(0, maxArguments);
    const inputs = list.map((argument) => [argument, toInput(argument)] as const);

    function read(): Readonly<Record<string, string>> {
      const filled = inputs.filter(([{ isRequired }, input]) => input.value || isRequired);
      return Object.fromEntries(filled.map(([{ name }, input]) => [name, input.value]));
    }

    function toField({ name, title, description, isRequired }: Argument, input: Element): Element {
      const hint = h("p.hint", { id: newId() }, serverText(description ?? ""));
      if (description) input.setAttribute("aria-describedby", hint.id);
      const label = h("label", { for: input.id }, h("span.name", {}, serverText(name)));
      if (title && title !== name) label.append(" ", h("span.title", {}, serverText(title)));
      const labels = h("div.labels", {}, label, isRequired && h("span.required", {}, "required"));
      return h("div.field", {}, labels, reference ? suggest(input, name) : input, description ? hint : undefined);
    }

    function toInput({ isRequired }: Argument): Element {
      const input = h("input", { id: newId(), autocomplete: "off", spellcheck: "false" });
      if (isRequired) input.setAttribute("aria-required", "true");
      input.addEventListener("input", () => changed?.());
      return input;
    }

    /** An input with a list of suggestions. */
    function suggest(input: Element, name: string): Element {
      const options = h("ul.options", {
        id: newId(),
        role: "listbox",
        "aria-label": escapeInvisible(`Suggestions for ${name}`),
      });
      let values: readonly string[] = [];
      let active = -1;
      let timer: ReturnType<typeof setTimeout> | undefined;
      let asking = new AbortController();

      async function ask(): Promise<void> {
        // A second list must not replace the one that the user is choosing from.
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
          const row = h("li", { role: "option", id: newId(), "aria-selected": "false" }, serverText(value));
          // `mousedown` comes before the input loses the focus and closes the list.
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
        timer = setTimeout(ask, delayMs);
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
    if (all.length > maxArguments) {
      element.append(h("p.muted", {}, `Only the first ${maxArguments} of ${all.length} arguments are shown.`));
    }
    return { element, read };
  };
}
