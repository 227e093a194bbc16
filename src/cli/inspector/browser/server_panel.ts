/**
 * The panel with facts about the server and the client.
 */
import { sandbox } from "./config.ts";
import { showPlainJson } from "./content_view.ts";
import {
  type Child,
  escapeInvisible,
  h,
  isWebUrl,
  makeCopyButton,
  makeLabelledField,
  makeLink,
  serverText,
} from "./dom.ts";
import { type Json, toObject, toObjects, toText } from "./json.ts";
import { client, server } from "./server_facts.ts";

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const ABILITIES = [
  ["Form elicitation", "elicitation", { form: {} }],
  ["URL elicitation", "elicitation", { url: {} }],
  ["Sampling", "sampling", {}],
  ["Roots", "roots", {}],
  ["Tasks", "extensions", { "io.modelcontextprotocol/tasks": {} }],
  ...sandbox === undefined
    ? []
    : [["Apps", "extensions", { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } }] as const],
] as const;

const facts = h("div");
const boxes = ABILITIES.map(() => h("input", { type: "checkbox", checked: true, change: declare }));
const level = h(
  "select",
  { change: declare },
  h("option", { value: "" }, "none"),
  ...LEVELS.map((name) => h("option", name)),
);
level.value = "debug";
declare();

export const serverPanel: HTMLElement = h(
  "div.page",
  facts,
  h("h2", "This client"),
  h("p.muted", "The page declares these capabilities in every request."),
  h(
    "fieldset.field",
    h("legend", "Capabilities"),
    h("div.boxes", ...ABILITIES.map(([name], at) => h("label", boxes[at], name))),
  ),
  makeLabelledField("Minimum log level", level),
);

function declare(): void {
  const declared: Record<string, Json> = {};
  ABILITIES.forEach(([, name, settings], at) => {
    if (boxes[at].checked) declared[name] = { ...declared[name], ...settings };
  });
  client.capabilities = declared;
  client.logLevel = level.value || undefined;
}

/** Shows the result of `server/discover` from the server at `url`. */
export function showServer(discovery: Json, url: string): void {
  const { name, title, version, description, websiteUrl, icons } = server.identity;
  const { instructions, supportedVersions } = discovery;
  const icon = toObjects(icons).map(({ src }) => String(src))
    .find((src) => /^data:image\/(png|jpeg|gif|webp|avif|svg\+xml)[;,]/i.test(src));
  const site = toText(websiteUrl) ?? "";
  const rows: readonly (readonly [string, Child])[] = [
    ["Name", h("code", serverText(name))],
    ["Title", toPart(title)],
    ["Version", toPart(version)],
    ["Description", toPart(description)],
    ["Website", isWebUrl(site) ? makeLink(site, escapeInvisible(site)) : toPart(site)],
    ["Protocol", toPart(Array.isArray(supportedVersions) ? supportedVersions.join(", ") : undefined)],
    ["Endpoint", h("span.line", h("code", serverText(url)), makeCopyButton(() => url))],
  ];
  facts.replaceChildren(
    h(
      "div.line",
      icon !== undefined && h("img.icon", { src: icon, alt: "" }),
      h("h2", serverText(toText(title) ?? name ?? "Server")),
    ),
    h("dl", ...rows.flatMap(([name, value]) => value ? [h("dt", name), h("dd", value)] : [])),
    ...toText(instructions) === undefined
      ? []
      : [h("h3", "Instructions"), h("p.description", serverText(instructions))],
    h("h3", "Capabilities"),
    showPlainJson(toObject(discovery.capabilities)),
  );
}

function toPart(value: unknown): Child {
  return toText(value) !== undefined && serverText(value);
}
