/**
 * Lights up everything that belongs to a call while the user points at a part of it: its messages in the log, its entry
 * in the history, and its result.
 */
const ATTRIBUTE = "data-call";
let lit: string | undefined;

/** Adds an element to a call. A request that is no call has its own id as the call. */
export function addToCall(element: HTMLElement, call: string): void {
  element.setAttribute(ATTRIBUTE, call);
  element.classList.toggle("lit", call === lit);
}

function light({ target }: Event): void {
  const call = target instanceof Element ? target.closest(`[${ATTRIBUTE}]`)?.getAttribute(ATTRIBUTE) : undefined;
  if (call === lit) return;
  lit = call ?? undefined;
  for (const element of document.querySelectorAll(`[${ATTRIBUTE}]`)) {
    element.classList.toggle("lit", element.getAttribute(ATTRIBUTE) === lit);
  }
}

document.addEventListener("pointerover", light);
document.addEventListener("focusin", light);
