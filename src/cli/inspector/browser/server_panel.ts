/**
 * The panel about the server and the client.
 *
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { ContentView } from "./content_view.ts";
import type { RpcClient } from "./rpc_client.ts";

/** The panel. */
export interface ServerPanel {
  readonly element: Element;
  /** Shows the description of the server. */
  show(identity: Json, discovery: Json): void;
}

/** Dependencies. */
export interface ServerPanelParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: ContentView;
  readonly wire: RpcClient;
  /** The URL of the endpoint. */
  readonly url: string;
}

/** Makes the panel. */
export function createServerPanel({ dom, json, show, wire, url }: ServerPanelParts): ServerPanel {
  const { h, serverText, escapeInvisible, copyButton, newId } = dom;
  const { isObject, objects, text } = json;
  const server = h("div");

  const abilities = [
    ["Form elicitation", { elicitation: { form: {} } }],
    ["URL elicitation", { elicitation: { url: {} } }],
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
      ["Name", h("code", {}, serverText(identity.name))],
      ["Title", part(identity.title)],
      ["Version", part(identity.version)],
      ["Description", part(identity.description)],
      [
        "Website",
        isWeb
          ? h("a", { href: site, target: "_blank", rel: "noopener noreferrer" }, escapeInvisible(site))
          : part(site),
      ],
      ["Protocol", part(Array.isArray(supportedVersions) ? supportedVersions.join(", ") : undefined)],
      ["Endpoint", h("span.line", {}, h("code", {}, url), copyButton("Copy", () => url))],
    ];
    server.replaceChildren(
      h(
        "div.line",
        {},
        icon ? h("img.icon", { src: String(icon.src), alt: "" }) : undefined,
        h("h2", {}, serverText(text(identity.title) ?? identity.name ?? "Server")),
      ),
      h("dl", {}, ...rows.flatMap(([name, value]) => value ? [h("dt", {}, name), h("dd", {}, value)] : [])),
      ...text(instructions) === undefined
        ? []
        : [h("h3", {}, "Instructions"), h("p.description", {}, serverText(instructions))],
      h("h3", {}, "Capabilities"),
      show.plainJson(isObject(capabilities) ? capabilities : {}),
    );
  }

  function part(value: unknown): Element | undefined {
    return text(value) === undefined ? undefined : serverText(value);
  }

  const element = h(
    "div.page",
    {},
    server,
    h("h2", {}, "This client"),
    h("p.muted", {}, "Declared in every request."),
    h(
      "fieldset.field",
      {},
      h("legend", {}, "Capabilities"),
      h("div.boxes", {}, ...boxes.map(({ name, box }) => h("label", {}, box, name))),
    ),
    h(
      "div.field",
      {},
      h("div.labels", {}, h("label", { for: level.id }, "Minimum log level")),
      level,
    ),
  );
  return { element, show: showServer };
}
