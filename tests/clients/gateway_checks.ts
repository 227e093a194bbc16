// What has to hold in every conversation with `mcp gateway`.
import type { Check } from "./checks.ts";
import { type Evidence, toResultBehaviours } from "./behaviours.ts";
import { findTool } from "./model/model.ts";
import type { Observation } from "./observation.ts";
import type { GatewayOption } from "./own_gateway.ts";
import type { WireEntry } from "./wire.ts";

/** A text that says how to accept what a lock file does not contain. A model must not read it. */
const HOW_TO_ACCEPT = /.{0,200}(mcp lock|mcp check|mcp\.lock|--accept).{0,200}/;

/** Checks what was seen of a gateway with options. */
export function toGatewayChecks(
  options: readonly GatewayOption[],
  { evidence, entries, unfinished }: Observation,
): readonly Check[] {
  const see = (step: string) => evidence.seen.get(step)?.text ?? "";
  const check = (name: string, isTrue: boolean, failure: string): Check => ({ name, ...isTrue ? {} : { failure } });
  const has = (step: string, pattern: RegExp) => pattern.test(see(step));
  const checks = [
    check("the client ends by itself", unfinished === undefined, unfinished ?? ""),
    check("a tool of the program returns", has("add", /4711/), see("add")),
    check("a tool of the server over HTTP returns", has("remote add", /4711/), see("remote add")),
  ];
  if (!options.length) checks.push(...toPlainChecks(evidence, entries));
  if (options.includes("search")) {
    const names = evidence.tools.map(({ name }) => name).filter((name) => /program|remote/.test(name));
    checks.push(
      check("the client lists only the search", !names.length, names.join(", ")),
      check(
        "the search finds the tools of both servers",
        has("search", /program_add/) && has("search", /remote_add/),
        see("search"),
      ),
      check("the client passes on an error", has("fail", /FAIL-MARK/), see("fail")),
      check("the client passes on a question", has("ask", toAsked(evidence)), see("ask")),
    );
  }
  if (options.includes("lock")) {
    const texts = [evidence.text, ...evidence.tools.map((tool) => JSON.stringify(tool))].join("\n");
    const hidden = ["unreviewed", "described", "grown"].filter((name) =>
      findTool(evidence.tools, `program_${name}`) || has(name, new RegExp(`${name.toUpperCase()}-MARK`))
    );
    const [leaked] = /.{0,200}NEW-MARK.{0,200}/.exec(texts) ?? [];
    const [revealed] = HOW_TO_ACCEPT.exec(texts) ?? [];
    checks.push(
      check("the client has no tool that the lock file does not contain", !hidden.length, hidden.join(", ")),
      check("the model reads no text that the lock file does not contain", leaked === undefined, leaked ?? ""),
      check("the model does not read how to accept a change", revealed === undefined, revealed ?? ""),
    );
  }
  return checks;
}

function toPlainChecks(evidence: Evidence, entries: readonly WireEntry[]): readonly Check[] {
  const see = (step: string) => evidence.seen.get(step)?.text ?? "";
  const check = (name: string, pattern: RegExp, text: string): Check => ({
    name,
    ...pattern.test(text) ? {} : { failure: text },
  });
  const grown = evidence.seen.has("grown");
  return [
    check("the program asks a question", toAsked(evidence), see("ask")),
    check("the server over HTTP asks a question", toAsked(evidence), see("remote ask")),
    check("a tool that reports its progress returns", /STEPS-MARK/, see("steps")),
    check("a call gets its progress", /^$/, toLostProgress(entries)),
    ...grown ? [check("the lists of both servers change", /GROWN-MARK/, see("remote grown"))] : [],
    check("the result of an ended program says so", /program/, see("end")),
    check("the gateway starts the program again", /4711/, see("add after end")),
    check("the result of an ended server over HTTP says so", /remote/, see("remote end")),
    check("a call of an ended server over HTTP says so", /Cannot reach remote/, see("remote add after end")),
  ];
}

/** Returns what the tool `ask` must return if the client supports questions, or if it does not. */
function toAsked(evidence: Evidence): RegExp {
  const { form } = toResultBehaviours(evidence);
  return evidence.wire.capabilities.elicitation === undefined ? /elicitation/ : new RegExp(`ASK-MARK ${form}`);
}

/** Returns which calls of the tool `steps` have a progress token, and get other progress than they reported. */
function toLostProgress(entries: readonly WireEntry[]): string {
  const calls = entries.flatMap(({ from, message }) =>
    from === "client" && message?.method === "tools/call" && /_steps$/.test(message.params.name) ? [message.params] : []
  );
  return calls.flatMap(({ name, _meta }) => {
    const token = _meta?.progressToken;
    if (token === undefined) return [];
    const seen = entries.flatMap(({ from, message }) =>
      from === "server" && message?.params?.progressToken === token ? [message.params.message] : []
    );
    return seen.length === 3 ? [] : [`${name}: ${seen.join(", ") || "none"}`];
  }).join("; ");
}
