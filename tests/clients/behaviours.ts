// What a client does, derived from what the model and the server have seen.
import type { OfferedTool, Seen } from "./model/turn.ts";
import { findTool } from "./model/model.ts";
import { LARGE } from "./script.ts";
import type { WireFacts } from "./wire.ts";

/** The behaviours of a client, by name. Values are short texts, which the page contains. */
export type Behaviours = Readonly<Record<string, string>>;

/** What was seen of a client. */
export interface Evidence {
  readonly wire: WireFacts;
  readonly seen: ReadonlyMap<string, Seen>;
  /** All tools that the client offered to the model, or to the program. */
  readonly tools: readonly OfferedTool[];
  /** Whether the client holds the definitions of tools back until the model asks for a tool. */
  readonly isDeferred: boolean;
  /** The tools that the model called, by step. */
  readonly called: ReadonlyMap<string, OfferedTool>;
  /** All texts that the model got, except results. */
  readonly text: string;
}

const LONG_NAME = `long_${"x".repeat(80)}_name`;

/** Derives the behaviours of an agent. */
export function toAgentBehaviours(evidence: Evidence): Behaviours {
  const { wire, tools, isDeferred, called, text, seen } = evidence;
  const name = called.get("add");
  return {
    ...toResultBehaviours(evidence),
    toolName: name ? [name.namespace, name.name].filter(Boolean).join(" / ") : "none",
    definitions: isDeferred ? "deferred" : "at the start",
    dot: toOffered(tools, text, "dotted.name", /dotted(.)name/),
    longName: toLongName(tools, text),
    description: toDescription(tools),
    instructions: toYes(text.includes("INSTRUCTIONS-MARK")),
    resources: toYes(tools.some(({ name }) => /resource/i.test(name)) || isDeferred && /mcp_?resource/i.test(text)),
    prompts: toYes(wire.methods.has("prompts/list")),
    listChanged: toYes(seen.get("grown")?.text.includes("GROWN-MARK") === true),
    ...Object.fromEntries(LARGE.map((characters) => [
      `result of ${characters.toLocaleString("en")} characters`,
      toLarge(seen.get(`large ${characters}`), characters),
    ])),
  };
}

/** Derives the behaviours that agents and frameworks have in common. */
export function toResultBehaviours({ wire, seen }: Evidence): Behaviours {
  const { capabilities } = wire;
  const elicitation = Object(capabilities.elicitation);
  return {
    revision: wire.revision ?? "none",
    clientName: String(wire.clientInfo?.name ?? "none"),
    number: isClean(seen.get("add"), "4711") ? "seen" : "lost",
    error: toError(seen.get("fail")),
    structured: toStructured(seen.get("both")),
    structuredOnly: has(seen.get("quiet"), "QUIET-MARK") ? "seen" : "lost",
    image: toImage(seen.get("picture")),
    objectWithImage: toObjectWithImage(seen.get("chart")),
    link: has(seen.get("link"), "probe://static") ? "seen" : "lost",
    textBesideLink: has(seen.get("linked"), "BESIDE-MARK") ? "seen" : "lost",
    embedded: has(seen.get("embedded"), "EMBEDDED-MARK") ? "seen" : "lost",
    form: toAction(seen.get("ask"), "ASK-MARK", capabilities.elicitation !== undefined),
    url: toAction(seen.get("visit"), "VISIT-MARK", elicitation.url !== undefined),
    sampling: toYes(capabilities.sampling !== undefined),
    roots: toYes(capabilities.roots !== undefined),
    closedStream: seen.has("closed") ? has(seen.get("closed"), "CLOSED-MARK") ? "seen" : "lost" : "not tried",
    progressToken: toYes(wire.hasProgressToken),
    endsSession: toYes(wire.endsSession),
    versionHeader: toYes(wire.sendsVersion),
  };
}

function toYes(value: boolean): string {
  return value ? "yes" : "no";
}

function has(seen: Seen | undefined, mark: string): boolean {
  return seen !== undefined && seen.text.includes(mark);
}

/** Tests whether the model sees a mark in a result that the client does not take for an error. */
function isClean(seen: Seen | undefined, mark: string): boolean {
  return has(seen, mark) && !seen?.isError && !/\berror\b/i.test(seen?.text ?? "");
}

function toError(seen: Seen | undefined): string {
  if (!has(seen, "FAIL-MARK")) return "lost";
  return seen?.isError || /error/i.test(seen?.text ?? "") ? "seen, marked as an error" : "seen";
}

function toStructured(seen: Seen | undefined): string {
  const [text, structured] = ["TEXT-MARK", "STRUCTURED-MARK"].map((mark) => has(seen, mark));
  return text && structured ? "both" : text ? "text only" : structured ? "structured only" : "neither";
}

const BASE64 = "iVBORw0KGgo";

function toImage(seen: Seen | undefined): string {
  if (seen?.images) return "image";
  return has(seen, BASE64) ? "Base64 text" : has(seen, "image/png") ? "announced" : "lost";
}

function toObjectWithImage(seen: Seen | undefined): string {
  const image = toImage(seen);
  const text = has(seen, "CHART-MARK") ? "text" : "no text";
  return `${text}, ${image === "lost" ? "image lost" : image}`;
}

function toAction(seen: Seen | undefined, mark: string, isDeclared: boolean): string {
  const action = new RegExp(`${mark} (\\w+)`).exec(seen?.text ?? "")?.[1];
  return action ?? (isDeclared ? "declared, fails" : "no");
}

/** Returns the character that replaces a dot in a name. */
function toOffered(tools: readonly OfferedTool[], text: string, name: string, pattern: RegExp): string {
  const offered = findTool(tools, name)?.name ?? tools.map(({ name }) => name).find((name) => pattern.test(name));
  const [, found] = pattern.exec(offered ?? text) ?? [];
  if (found === undefined) return "omitted";
  return found === "." ? "kept" : `becomes \`${found}\``;
}

function toLongName(tools: readonly OfferedTool[], text: string): string {
  const offered = tools.map(({ name }) => name).find((name) => name.includes("xxxxx")) ??
    /[\w.-]*x{20}[\w.-]*/.exec(text)?.[0];
  if (!offered) return "omitted";
  return offered.endsWith(LONG_NAME) ? "kept" : `${offered.length} characters`;
}

function toDescription(tools: readonly OfferedTool[]): string {
  const description = findTool(tools, "described")?.description;
  if (description === undefined) return "not offered";
  return description.includes("END-MARK") ? "whole" : `cut to ${description.length}`;
}

function toLarge(seen: Seen | undefined, characters: number): string {
  if (!seen) return "not tried";
  const [begin, end] = ["BEGIN-MARK", "END-MARK"].map((mark) => seen.text.includes(mark));
  if (begin && end && seen.text.length >= characters) return "whole";
  const part = begin && end ? "beginning and end" : begin ? "beginning" : end ? "end" : "nothing";
  return /saved to|see: |\/[\w.-]+\/[\w.-]+\//i.test(seen.text) ? `${part}, and a file` : part;
}
