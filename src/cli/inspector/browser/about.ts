/**
 * The panel of the server: what it says of itself, and what the page says of itself.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";
import type { Show } from "./show.ts";
import type { Wire } from "./wire.ts";

/** The panel. */
export interface About {
  readonly element: Element;
  /** Shows what the server said of itself. */
  show(identity: Json, discovery: Json): void;
}

/** What the panel is built with. */
export interface AboutParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: Show;
  readonly wire: Wire;
  /** The endpoint's URL. */
  readonly url: string;
}

/** Makes the panel. */
export function createAbout({ dom, json, show, wire, url }: AboutParts): About {
  const { h, say, visible, copier, newId } = dom;
  const { isObject, objects, text } = json;
  const server = h("div");

  const abilities = [
    ["Elicitation by form", { elicitation: { form: {} } }],
    ["Elicitation by URL", { elicitation: { url: {} } }],
    ["Sampling", { sampling: {} }],
    ["Roots", { roots: {} }],
  ] as const;
  const boxes = abilities.map(([name, capability]) => {
    const box = h("input", { type: "checkbox", checked: true, change: declare });
    return { name, capability, box };
  });
  const levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
  const level = h(
    "select",
    { id: newId(), change: declare },
    h("option", { value: "" }, "none"),
    ...levels.map((name) => h("option", { value: name }, name)),
  );
  level.value = "debug";
  declare();

  function declare(): void {
    const declared: Record<string, Json> = {};
    for (const { capability, box } of boxes) {
      if (!box.checked) continue;
      for (const [name, settings] of Object.entries(capability)) declared[name] = { ...declared[name], ...settings };
    }
    wire.capabilities = declared;
    wire.logLevel = level.value || undefined;
  }

  function showServer(identity: Json, discovery: Json): void {
    const { websiteUrl, icons } = identity;
    const { instructions, capabilities, supportedVersions } = discovery;
    const icon = objects(icons).find(({ src }) =>
      typeof src === "string" && /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/i.test(src)
    );
    const site = text(websiteUrl);
    const isWeb = site !== undefined && /^https?:\/\//i.test(site) && URL.canParse(site);
    const rows: readonly (readonly [string, Element | undefined])[] = [
      ["Name", h("code", {}, say(identity.name))],
      ["Title", part(identity.title)],
      ["Version", part(identity.version)],
      ["Description", part(identity.description)],
      [
        "Website",
        isWeb ? h("a", { href: site, target: "_blank", rel: "noopener noreferrer" }, visible(site)) : part(site),
      ],
      ["Protocol", part(Array.isArray(supportedVersions) ? supportedVersions.join(", ") : undefined)],
      ["Endpoint", h("span.line", {}, h("code", {}, url), copier("Copy", () => url))],
    ];
    server.replaceChildren(
      h(
        "div.line",
        {},
        icon ? h("img.icon", { src: String(icon.src), alt: "" }) : undefined,
        h("h2", {}, say(text(identity.title) ?? identity.name ?? "Server")),
      ),
      h("dl", {}, ...rows.flatMap(([name, value]) => value ? [h("dt", {}, name), h("dd", {}, value)] : [])),
      ...text(instructions) === undefined
        ? []
        : [h("h3", {}, "Instructions"), h("p.description", {}, say(instructions))],
      h("h3", {}, "Capabilities"),
      show.plainJson(isObject(capabilities) ? capabilities : {}),
    );
  }

  function part(value: unknown): Element | undefined {
    return text(value) === undefined ? undefined : say(value);
  }

  const element = h(
    "div.page",
    {},
    server,
    h("h2", {}, "This page as a client"),
    h("p.muted", {}, "What it says of itself in the next request."),
    h(
      "fieldset.field",
      {},
      h("legend", {}, "Capabilities"),
      h("div.boxes", {}, ...boxes.map(({ name, box }) => h("label", {}, box, name))),
    ),
    h(
      "div.field",
      {},
      h("div.labels", {}, h("label", { for: level.id }, "Log messages from level")),
      level,
    ),
  );
  return { element, show: showServer };
}
