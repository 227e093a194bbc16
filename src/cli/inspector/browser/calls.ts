/**
 * Runs calls: rounds of questions, progress, log messages, the result.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json.ts";
import type { AnswerQuestion } from "./questions.ts";
import type { Show } from "./show.ts";
import type { Outcome, SendOptions, Wire } from "./wire.ts";

/** Runs one call at a time, and shows it. */
export interface Runner {
  /** The buttons. */
  readonly actions: Element;
  /** What comes back. */
  readonly output: Element;
  /** Sends a request and shows its result with `present`. Does nothing while another one runs. */
  run(request: CallRequest): Promise<void>;
}

/** What to send, and how to show the result. */
export interface CallRequest {
  readonly method: string;
  readonly params: Json;
  readonly repeated?: SendOptions["repeated"];
  readonly present: (result: Json) => readonly Element[];
}

/** What runners are built with. */
export interface CallParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: Show;
  readonly wire: Wire;
  readonly answer: AnswerQuestion;
  /** Says something to who cannot see the page. */
  readonly announce: (text: string) => void;
}

/** Makes runners; `verb` is on the button. */
export type MakeRunner = (verb: string) => Runner;

/** Makes the maker of runners. */
export function createCalls({ dom, json, show, wire, answer, announce }: CallParts): MakeRunner {
  const { h, say, visible } = dom;
  const { isObject, text, time, size } = json;
  const mostRounds = 64;
  let tokens = 0;

  return (verb) => {
    const start = h("button.primary", { type: "submit" }, verb);
    const stop = h("button", { type: "button", click: () => stopping?.abort() }, "Stop");
    const actions = h("div.actions", {}, start, stop);
    const output = h("section.output", { "aria-label": "Result" });
    let stopping: AbortController | undefined;
    stop.hidden = true;

    async function run({ method, params, repeated, present }: CallRequest): Promise<void> {
      if (stopping) return;
      const { signal } = stopping = new AbortController();
      const began = performance.now();
      const news = h("div.news");
      const clock = h("span.muted");
      const title = h("span.state.running", {}, "Running");
      const heard = hear(news);
      output.replaceChildren(h("div.head", {}, title, clock), news);
      stop.hidden = false;
      start.setAttribute("aria-disabled", "true");
      const timer = setInterval(() => clock.textContent = time(performance.now() - began), 100);
      const outcome = await finish(
        method,
        params,
        { signal, repeated, onNotification: heard.onNotification },
        heard.token,
      );
      clearInterval(timer);
      stopping = undefined;
      stop.hidden = true;
      start.removeAttribute("aria-disabled");
      const [head, ...rest] = toOutput(outcome, performance.now() - began, present);
      output.replaceChildren(head, news, ...rest);
      head.scrollIntoView({ block: "nearest" });
      announce(`${verb}: ${[...head.querySelectorAll("span")].map((part) => part.textContent).join(", ")}`);
    }

    return { actions, output, run };
  };

  /** Sends the request again with the answers of the user until there is a result. */
  async function finish(method: string, params: Json, options: SendOptions, token: string): Promise<Outcome> {
    let rest: Json = {};
    for (let round = 0; round < mostRounds; round++) {
      const outcome = await wire.send(method, { ...params, ...rest, _meta: { progressToken: token } }, options);
      if (outcome.kind !== "result" || outcome.result.resultType !== "input_required") return outcome;
      const { inputRequests, requestState } = outcome.result;
      const inputResponses: [string, Json][] = [];
      for (const [key, asked] of Object.entries(isObject(inputRequests) ? inputRequests : {})) {
        const { method: question, params: about } = isObject(asked) ? asked : {};
        const response = await answer(String(question), isObject(about) ? about : {});
        if (!response) return { kind: "stopped", ms: outcome.ms };
        inputResponses.push([key, response]);
      }
      rest = {
        ...inputResponses.length ? { inputResponses: Object.fromEntries(inputResponses) } : {},
        ...requestState === undefined ? {} : { requestState },
      };
    }
    return { kind: "error", message: `The server has asked ${mostRounds} times; the page asks no more`, ms: 0 };
  }

  /** Shows what is said on the way. */
  function hear(news: Element): { token: string; onNotification: SendOptions["onNotification"] } {
    const token = `p${++tokens}`;
    const bar = h("progress", { "aria-label": "Progress" });
    const words = h("span");
    const row = h("div.progress", {}, bar, words);
    const messages = h("ul.messages", { "aria-label": "Log messages" });

    function onNotification(method: string, params: Json): void {
      if (method === "notifications/progress" && params.progressToken === token) tell(params);
      if (method === "notifications/message") {
        if (!messages.childElementCount) news.append(messages);
        const { level, logger, data } = params;
        const from = text(logger);
        const what = typeof data === "string" ? say(data) : h("code", {}, visible(JSON.stringify(data)));
        const mark = h("span.level", {}, visible(level));
        if (/^(error|critical|alert|emergency)$/.test(String(level))) mark.classList.toggle("bad", true);
        messages.append(h("li", {}, mark, from === undefined ? undefined : h("span.muted", {}, say(from)), what));
      }
    }

    function tell({ progress, total, message }: Json): void {
      if (!row.isConnected) news.append(row);
      const isKnown = typeof total === "number" && total > 0;
      if (isKnown && typeof progress === "number") {
        bar.max = total;
        bar.value = String(Math.max(0, Math.min(progress, total)));
      } else bar.removeAttribute("value");
      const note = text(message);
      words.replaceChildren(
        `${progress}${isKnown ? ` of ${total}` : ""}`,
        ...note === undefined ? [] : [" · ", say(note)],
      );
    }

    return { token, onNotification };
  }

  function toOutput(outcome: Outcome, ms: number, present: CallRequest["present"]): Element[] {
    if (outcome.kind === "stopped") return [toHead("Stopped", "stopped", time(ms))];
    if (outcome.kind === "error") return [toHead("Failed", "bad", time(ms)), show.error(outcome)];
    const { result } = outcome;
    const isError = result.isError === true;
    const facts = `${time(ms)} · ${size(outcome.size)} characters`;
    const head = toHead(isError ? "Tool error" : "Done", isError ? "bad" : "good", facts);
    return [head, ...present(result), show.fold("Whole result as JSON", () => show.json(result))];
  }

  function toHead(state: string, kind: string, facts: string): Element {
    return h("div.head", {}, h(`span.state.${kind}`, {}, state), h("span.muted", {}, facts));
  }
}
