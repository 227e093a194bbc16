// A fake browser tab, so that tests of web pages run without a browser.

/** The URL of the page. */
export const APP = "https://app.example.com/";

/** A browser tab: its address, and what a page can do in it. Disposing restores the globals. */
export class Tab implements Disposable {
  address = APP;
  readonly stored = new Map<string, string>();
  /** The addresses that the page has left for, or has replaced its own with. */
  readonly visited: string[] = [];
  readonly #before = ["location", "history", "sessionStorage", "addEventListener", "dispatchEvent"].map((name) =>
    [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const
  );

  constructor() {
    // deno-lint-ignore no-this-alias
    const tab = this;
    const events = new EventTarget(); // Node has no global events.
    const values = {
      addEventListener: events.addEventListener.bind(events),
      dispatchEvent: events.dispatchEvent.bind(events),
      location: {
        get href() {
          return tab.address;
        },
        origin: new URL(APP).origin,
        assign: (url: string) => void tab.visited.push(url),
      },
      history: {
        state: null,
        replaceState: (_state: unknown, _unused: string, url: string) => void tab.visited.push(tab.address = url),
      },
      sessionStorage: {
        getItem: (key: string) => tab.stored.get(key) ?? null,
        setItem: (key: string, value: string) => void tab.stored.set(key, value),
        removeItem: (key: string) => void tab.stored.delete(key),
      },
    };
    for (const [name, value] of Object.entries(values)) {
      Object.defineProperty(globalThis, name, { value, configurable: true });
    }
  }

  [Symbol.dispose](): void {
    for (const [name, descriptor] of this.#before) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else Reflect.deleteProperty(globalThis, name);
    }
  }
}
