// What has to hold in every conversation, whatever the client shows to the model.
import { isDeepStrictEqual } from "node:util";
import { type Evidence, toResultBehaviours } from "./behaviours.ts";
import { OFFICIAL_TOOLS, TOOLS } from "./script.ts";
import type { Observation } from "./observation.ts";
import type { Connection } from "./teed_server.ts";
import { countCalls, toResults } from "./wire.ts";

/** The outcome of a check. */
export interface Check {
  readonly name: string;
  /** The reason of a failure; `undefined` if the check passed. */
  readonly failure?: string;
}

/** Checks what was seen over a connection. */
export function toChecks(
  { connection: { probe }, evidence, entries, unfinished }: Observation & { readonly connection: Connection },
): readonly Check[] {
  const { number, error, textBesideLink, closedStream } = toResultBehaviours(evidence);
  const names = evidence.tools.map(({ name }) => name);
  const isOfficial = probe === "official";
  const lost = (isOfficial ? OFFICIAL_TOOLS : TOOLS).filter((tool) => !isOffered(tool, evidence));
  const check = (name: string, isTrue: boolean, failure: string): Check => ({ name, ...isTrue ? {} : { failure } });
  const always = [
    check("the client ends by itself", unfinished === undefined, unfinished ?? ""),
    check("the client lists all tools", !lost.length, `${lost} are missing in ${names}`),
    check("the client passes on an error", error.startsWith("seen"), JSON.stringify(evidence.seen.get("fail"))),
    check("the client passes on a text beside a link", textBesideLink === "seen", textBesideLink),
  ];
  if (isOfficial) return always;
  const asked = countCalls(entries, "ask");
  const mostAsked = evidence.wire.revision === "2026-07-28" ? 2 : 1;
  const { info } = JSON.parse(toResults(entries).get("who")?.content?.[0]?.text ?? "{}");
  return [
    ...always,
    check("the client passes on a number", number === "seen", JSON.stringify(evidence.seen.get("add"))),
    check("a result arrives after the stream was closed", closedStream === "seen", closedStream),
    check("a tool that asks a question is called as often as needed", asked <= mostAsked, `${asked} calls`),
    check(
      "the handler gets the whole client info",
      isDeepStrictEqual(info, evidence.wire.clientInfo),
      JSON.stringify(info),
    ),
  ];
}

/** Tests whether the client offers a tool, or names it in the list of tools that the model can load. */
function isOffered(tool: string, { tools, text, isDeferred }: Evidence): boolean {
  const pattern = new RegExp(tool.replace(/x{10}.*$/, "x{10}").replace(".", "[._-]"));
  return tools.some(({ name }) => pattern.test(name)) || isDeferred && pattern.test(text);
}
