// Finds texts that users cannot read, and controls that users cannot reach or identify. Tests send each function to the
// page as text, so that it runs in the page.

/** Returns the texts whose contrast to their background is below 4.5, as defined by WCAG 2. */
export function findFaint(): unknown[] {
  // deno-lint-ignore no-explicit-any
  const { document, getComputedStyle } = globalThis as any; // Deno has no types for the page's DOM.
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const toRgba = (color: string): number[] => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const toLight = (rgba: number[]) => {
    const [r, g, b] = rgba.slice(0, 3).map((value) => value / 255).map((value) =>
      value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const faint: unknown[] = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest(".unseen, script, [aria-disabled]")) continue;
    let ground = element;
    while (ground && toRgba(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
    const behind = toLight(toRgba(ground ? getComputedStyle(ground).backgroundColor : "white"));
    const text = toLight(toRgba(getComputedStyle(element).color));
    const ratio = (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    if (ratio < 4.5) faint.push([ratio.toFixed(2), element.outerHTML.slice(0, 120)]);
  }
  return faint;
}

/** Returns the controls without an accessible name. */
export function findNameless(): unknown[] {
  // deno-lint-ignore no-explicit-any
  const { document } = globalThis as any; // Deno has no types for the page's DOM.
  return [...document.querySelectorAll("button, input, select, textarea, [role=tab], dialog, progress")].filter(
    (each) => {
      const label = each.getAttribute("aria-label") ??
        document.getElementById(each.getAttribute("aria-labelledby"))?.textContent;
      return !(label ?? "").trim() && !each.textContent.trim() &&
        ![...each.labels ?? []].some((one) => one.textContent.trim());
    },
  ).map((each) => each.outerHTML.slice(0, 120));
}

/** Returns the controls that extend beyond the window. */
export function findCut(): unknown[] {
  // deno-lint-ignore no-explicit-any
  const { document, innerWidth } = globalThis as any; // Deno has no types for the page's DOM.
  return [...document.querySelectorAll("button, input, select, textarea, pre, h1, h2, dialog")].filter((each) => {
    const { left, right } = each.getBoundingClientRect();
    return each.checkVisibility() && !each.closest(".tabs") && (left < 0 || right > innerWidth + 0.5);
  }).map((each) => each.outerHTML.slice(0, 120));
}
