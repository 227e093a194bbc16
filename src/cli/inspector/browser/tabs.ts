/**
 * Tabs.
 *
 * @module
 */
import type { Browser, Dom, Element, UiEvent } from "./dom.ts";

/** The content of a tab. */
export interface View {
  readonly name: string;
  readonly element: Element;
  /** A count beside the name. */
  readonly count?: Element;
}

/** Dependencies. */
export interface TabParts {
  readonly browser: Browser;
  readonly dom: Dom;
  readonly views: readonly View[];
  /** Called when the user opens a tab. */
  readonly onOpen: (name: string) => void;
}

/** The tabs. */
export interface Tabs {
  readonly element: Element;
  /** Opens a tab. Opens the first one if the name is unknown. */
  openTab(name: string): void;
  /** The open tab. */
  readonly view: View;
}

/** Makes tabs. */
export function createTabs({ browser: { document }, dom: { h, newId }, views, onOpen }: TabParts): Tabs {
  let [open] = views;
  const tabs = views.map(({ name, element, count }) => {
    element.id = newId();
    const tab = h("button", { role: "tab", type: "button", id: newId(), "aria-controls": element.id }, name);
    if (count) tab.append(" ", count);
    element.setAttribute("role", "tabpanel");
    element.setAttribute("aria-labelledby", tab.id);
    tab.addEventListener("click", () => {
      openTab(name);
      onOpen(name);
    });
    return tab;
  });

  function openTab(name: string): void {
    open = views.find((each) => each.name === name) ?? views[0];
    views.forEach((view, at) => {
      const isOpen = view === open;
      tabs[at].setAttribute("aria-selected", String(isOpen));
      tabs[at].setAttribute("tabindex", isOpen ? "0" : "-1");
      view.element.hidden = !isOpen;
      if (isOpen) tabs[at].scrollIntoView({ block: "nearest" });
    });
  }

  function walk(event: UiEvent): void {
    const at = tabs.findIndex((tab) => tab === document.activeElement);
    const last = tabs.length - 1;
    const steps: Readonly<Record<string, number>> = {
      ArrowRight: at < last ? at + 1 : 0,
      ArrowLeft: at > 0 ? at - 1 : last,
      Home: 0,
      End: last,
    };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    openTab(views[to].name);
    onOpen(views[to].name);
    tabs[to].focus();
  }

  const element = h("div.tabs", { role: "tablist", "aria-label": "Parts of the server", keydown: walk }, ...tabs);
  return {
    element,
    openTab,
    get view() {
      return open;
    },
  };
}
