/**
 * Functions that create DOM elements.
 */
import { escapeUnprintable } from "../../../core/kit/printable.ts";

/** A listener for any event. Declared as a method, so that the type also accepts listeners for specific events. */
type Listener = { handle(event: Event): void }["handle"];

/** Attributes by name, and listeners by event name. `undefined` and `false` are skipped. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined | Listener>>;

/** A child of an element. `undefined` and `false` are skipped. */
export type Child = Element | string | undefined | false;

type Tag<Spec extends string> = Spec extends `${infer Name}.${string}` ? Name : Spec;

export type Made<Spec extends string> = Tag<Spec> extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[Tag<Spec>]
  : HTMLElement;

/**
 * Creates an element from a tag with classes, such as `button.primary`. `first` can be attributes or the first child.
 * Text never becomes markup.
 */
export function h<Spec extends string>(spec: Spec, first?: Attributes | Child, ...rest: Child[]): Made<Spec>;
export function h(spec: string, first?: Attributes | Child, ...rest: Child[]): HTMLElement {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  const hasAttributes = typeof first === "object" && !(first instanceof Element);
  if (hasAttributes) setAttributes(element, first);
  for (const child of hasAttributes ? rest : [first, ...rest]) if (child) element.append(child);
  return element;
}

/** Sets attributes, and adds a listener for each value that is a function. */
export function setAttributes(element: HTMLElement, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Creates a button that only calls `click`, and never submits a form. */
export function makeButton(spec: `button${string}`, label: string, click: () => void): HTMLButtonElement;
export function makeButton(spec: string, label: string, click: () => void): HTMLElement {
  return h(spec, { type: "button", click }, label);
}

/**
 * Makes characters visible that can disguise or hide text: direction marks, zero-width characters and blank characters.
 * Keeps the two joiners, because many languages need them. Also keeps line feeds and tabs.
 */
export function escapeInvisible(text: unknown): string {
  const toCode = (code: number) => `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  return escapeUnprintable(String(text).replaceAll("\r\n", "\n"), "\n\t\u200c\u200d", toCode);
}

/** Isolates the direction of text from the server, and makes control characters visible. */
export function serverText(text: unknown): HTMLElement {
  return h("bdi", escapeInvisible(text));
}

let ids = 0;

export function newId(): string {
  return `i${++ids}`;
}

/** Creates a button that copies the text that `text` returns. */
export function makeCopyButton(text: () => string): HTMLButtonElement {
  const button = makeButton("button.quiet.small", "Copy", copy);
  let timer: number | undefined;
  async function copy(): Promise<void> {
    // Outside of a secure context, the clipboard API does not exist.
    const isCopied = await navigator.clipboard?.writeText(text()).then(() => true, () => false) ?? false;
    button.textContent = isCopied ? "Copied" : "Not copied";
    clearTimeout(timer);
    timer = setTimeout(() => button.textContent = "Copy", 1500);
  }
  return button;
}

/** Creates a link that opens a web page in a new tab. The web page does not receive the URL of this page. */
export function makeLink(url: string, ...children: Child[]): HTMLAnchorElement {
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

export function isWebUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text);
}

export function makeLabelledField(label: string, control: HTMLElement, note?: Child): HTMLElement {
  control.id ||= newId();
  return h("div.field", h("div.labels", h("label", { for: control.id }, label), note), control);
}

/** `close` removes the dialog, and restores the focus. `onDismiss` is called when the user presses Escape. */
export function openDialog(form: HTMLFormElement, heading: HTMLElement, onDismiss: () => void): { close(): void } {
  const before = document.activeElement;
  heading.id = newId();
  const dialog = h("dialog", { "aria-labelledby": heading.id }, form);
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    onDismiss();
  });
  document.body.append(dialog);
  dialog.showModal();
  return {
    close() {
      dialog.close();
      dialog.remove();
      if (before instanceof HTMLElement) before.focus();
    },
  };
}
