/**
 * Tabs that switch between views.
 */
import { h, makeButton, newId, setAttributes } from "./dom.ts";

export interface View {
  readonly name: string;
  readonly element: HTMLElement;
  /** The count that the tab shows next to the name. */
  readonly count?: HTMLElement;
}

export interface Tabs {
  readonly element: HTMLElement;
  /** Opens the tab with this name, or the first tab if the name is unknown. */
  openTab(name: string): void;
}

/** Creates tabs. `onOpen` is called when the user opens a tab. */
export function makeTabs(views: readonly View[], onOpen: (name: string) => void): Tabs {
  const tabs = views.map(({ name, element, count }) => {
    const tab = makeButton("button", name, () => choose(name));
    element.id = newId();
    setAttributes(tab, { role: "tab", id: newId(), "aria-controls": element.id });
    setAttributes(element, { role: "tabpanel", "aria-labelledby": tab.id });
    if (count) tab.append(" ", count);
    return tab;
  });

  function openTab(name: string): void {
    const open = Math.max(0, views.findIndex((view) => view.name === name));
    views.forEach(({ element }, at) => {
      const isOpen = at === open;
      setAttributes(tabs[at], { "aria-selected": String(isOpen), tabindex: isOpen ? 0 : -1 });
      element.hidden = !isOpen;
      if (isOpen) tabs[at].scrollIntoView({ block: "nearest" });
    });
  }

  function choose(name: string): void {
    openTab(name);
    onOpen(name);
  }

  function walk(event: KeyboardEvent): void {
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
    choose(views[to].name);
    tabs[to].focus();
  }

  const element = h("div.tabs", { role: "tablist", "aria-label": "Parts of the server", keydown: walk }, ...tabs);
  return { element, openTab };
}
