/**
 * The browser APIs that the page uses, and functions that make elements.
 *
 * Each file in this folder has one function. Its source text is sent to the browser, so it uses only its parameters and
 * browser APIs, and imports only types.
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
  /** The form of a control. */
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
  /** Storage of the tab. Throws if the browser denies storage. */
  readonly sessionStorage: { getItem(name: string): string | null; setItem(name: string, value: string): void };
  readonly history: { replaceState(state: null, unused: string, url: string): void };
  readonly innerWidth: number;
  readonly navigator: { readonly clipboard?: { writeText(text: string): Promise<void> } };
  addEventListener(type: string, listener: () => void): void;
}

/** Attributes by name, and listeners by the event's name. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: UiEvent) => void)>>;

/** A child of an element. `undefined` and `false` are skipped. */
export type Child = Element | string | undefined | false;

/** Makes elements. */
export interface Dom {
  /** Makes an element from a tag and classes, such as `button.primary`. Text never becomes markup. */
  h(spec: string, attributes?: Attributes, ...children: Child[]): Element;
  /** Makes an element for text of the server, with isolated direction and visible control characters. */
  serverText(text: unknown): Element;
  /** Replaces invisible characters with their code points. */
  escapeInvisible(text: unknown): string;
  /** Returns a unique element ID. */
  newId(): string;
  /** Makes a button that copies text. */
  copyButton(label: string, text: () => string): Element;
}

/** Creates the functions. */
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

  // Direction marks, zero-width and blank characters can disguise or hide text. The two joiners stay, because many
  // languages and emoji need them.
  function escapeInvisible(text: unknown): string {
    return String(text).replace(
      /(?!\r\n|[\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0d\u{e0100}-\u{e01ef}]/gu,
      (character) => `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`,
    );
  }

  function serverText(text: unknown): Element {
    return h("bdi", {}, escapeInvisible(text));
  }

  function copyButton(label: string, text: () => string): Element {
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

  return { h, serverText, escapeInvisible, newId: () => `i${++ids}`, copyButton };
}
