/**
 * What the page's code uses of a browser, and how it makes elements.
 *
 * Every file of this folder has one function, which runs in the browser: its text is sent there. So it uses nothing but
 * its parameters and what browsers have, and imports types only.
 *
 * @module
 */

/** An event. */
export interface UiEvent {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly altKey: boolean;
  readonly isComposing: boolean;
  readonly target: Element;
  readonly relatedTarget: Element | null;
  preventDefault(): void;
}

/** An element of any kind. */
export interface Element {
  id: string;
  className: string;
  textContent: string;
  value: string;
  checked: boolean;
  disabled: boolean;
  hidden: boolean;
  open: boolean;
  max: number;
  scrollTop: number;
  readonly tagName: string;
  readonly scrollHeight: number;
  readonly clientHeight: number;
  readonly validity: { readonly badInput: boolean };
  readonly classList: { toggle(name: string, force?: boolean): void };
  readonly isConnected: boolean;
  readonly childElementCount: number;
  readonly firstElementChild: Element | null;
  /** The form that a control belongs to. */
  readonly form: Element | null;
  append(...children: (Element | string)[]): void;
  replaceChildren(...children: (Element | string)[]): void;
  remove(): void;
  replaceWith(other: Element): void;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  getAttribute(name: string): string | null;
  addEventListener(type: string, listener: (event: UiEvent) => void): void;
  querySelector(selector: string): Element | null;
  querySelectorAll(selector: string): Iterable<Element>;
  contains(other: Element | null): boolean;
  matches(selector: string): boolean;
  checkVisibility(): boolean;
  focus(): void;
  requestSubmit(): void;
  scrollIntoView(options: { readonly block: "nearest" }): void;
  showModal(): void;
  close(): void;
}

/** The window. */
export interface Browser {
  readonly document: {
    title: string;
    readonly body: Element;
    readonly activeElement: Element | null;
    createElement(tag: string): Element;
    addEventListener(type: string, listener: (event: UiEvent) => void): void;
  };
  readonly location: { hash: string; readonly origin: string; reload(): void };
  /** Kept for the tab. Throws where the browser keeps nothing. */
  readonly sessionStorage: { getItem(name: string): string | null; setItem(name: string, value: string): void };
  readonly history: { replaceState(state: null, unused: string, url: string): void };
  readonly innerWidth: number;
  readonly navigator: { readonly clipboard?: { writeText(text: string): Promise<void> } };
  addEventListener(type: string, listener: () => void): void;
}

/** Attributes by name, and listeners by the event's name. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: UiEvent) => void)>>;

/** What may stand in an element; what is not there is left out. */
export type Child = Element | string | undefined | false;

/** Makes elements. */
export interface Dom {
  /** An element from a tag and classes, such as `button.primary`. Text becomes text, never markup. */
  h(spec: string, attributes?: Attributes, ...children: Child[]): Element;
  /** Text of the server's, kept apart from its surroundings, with characters shown that one cannot see. */
  say(text: unknown): Element;
  /** The same as a string. */
  visible(text: unknown): string;
  /** An id that no other element has. */
  newId(): string;
  /** A small button that copies a text. */
  copier(label: string, text: () => string): Element;
}

/** Makes the maker of elements. */
export function createDom({ document, navigator }: Browser): Dom {
  let ids = 0;

  function h(spec: string, attributes: Attributes = {}, ...children: Child[]): Element {
    const [tag, ...classes] = spec.split(".");
    const element = document.createElement(tag);
    if (classes.length) element.className = classes.join(" ");
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (name === "value") element.value = String(value ?? "");
      else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
    }
    for (const child of children) if (child) element.append(child);
    return element;
  }

  // Direction marks, zero-width characters, blank letters and the like can make a text look like another one, or hide
  // a part of it. The two joiners stay, because many languages and emojis are written with them.
  function visible(text: unknown): string {
    return String(text).replace(
      /(?!\r\n|[\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0d\u{e0100}-\u{e01ef}]/gu,
      (character) => `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`,
    );
  }

  function say(text: unknown): Element {
    return h("bdi", {}, visible(text));
  }

  function copier(label: string, text: () => string): Element {
    const button = h("button.quiet.small", { type: "button", click: copy }, label);
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function copy(): Promise<void> {
      const done = await navigator.clipboard?.writeText(text()).then(() => true, () => false) ?? false;
      button.textContent = done ? "Copied" : "Not copied";
      clearTimeout(timer);
      timer = setTimeout(() => button.textContent = label, 1500);
    }
    return button;
  }

  return { h, say, visible, newId: () => `i${++ids}`, copier };
}
