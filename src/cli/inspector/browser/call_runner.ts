/**
 * Runs calls, and shows their input requests, progress, log messages and results.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 * @module
 */
import type { Dom, Element } from "./dom.ts";
import type { Json, JsonTools } from "./json_tools.ts";
import type { AskUser } from "./question_dialogs.ts";
import type { ContentView } from "./content_view.ts";
import type { Outcome, RpcClient, SendOptions } from "./rpc_client.ts";

/** Runs one call at a time and shows it. */
export interface Runner {
  /** The buttons. */
  readonly actions: Element;
  /** The result. */
  readonly output: Element;
  /** Sends a request and shows its result with `present`. Does nothing while a call is running. */
  run(request: CallRequest): Promise<void>;
}

/** A request, and how to show its result. */
export interface CallRequest {
  readonly method: string;
  readonly params: Json;
  readonly paramHeaders?: SendOptions["paramHeaders"];
  readonly present: (result: Json) => readonly Element[];
}

/** Dependencies. */
export interface CallParts {
  readonly dom: Dom;
  readonly json: JsonTools;
  readonly show: ContentView;
  readonly wire: RpcClient;
  readonly answer: AskUser;
  /** Announces text to screen readers. */
  readonly announce: (text: string) => void;
}

/** Makes a runner. `verb` is the label of its button. */
export type MakeRunner = (verb: string) => Runner;

/** Creates the factory. */
export function createCallRunners({ dom, json, show, wire, answer, announce }: CallParts): MakeRunner {
  const { h, serverText, escapeInvisible } = dom;
  const { isObject, text, time, size } = json;
  const maxRounds = 64;
  let tokens = 0;

  return (verb) => {
    const start = h("button.primary", { type: "submit" }, verb);
    const stop = h("button", { type: "button", click: () => stopping?.abort() }, "Stop");
    const actions = h("div.actions", {}, start, stop);
    const output = h("section.output", { "aria-label": "Result" });
    let stopping: AbortController | undefined;
    stop.hidden = true;

    async function run({ method, params, paramHeaders, present }: CallRequest): Promise<void> {
      if (stopping) return;
      const { signal } = stopping = new AbortController();
      const began = performance.now();
      const news = h("div.news");
      const clock = h("span.muted");
      const title = h("span.state.running", {}, "Running");
      const updates = showUpdates(news);
      output.replaceChildren(h("div.head", {}, title, clock), news);
      stop.hidden = false;
      start.setAttribute("aria-disabled", "true");
      const timer = setInterval(() => clock.textContent = time(performance.now() - began), 100);
      const outcome = await finish(
        method,
        params,
        { signal, paramHeaders, onNotification: updates.onNotification },
        updates.token,
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

  /** Sends the request, and repeats it with the answers of the user until there is a result. */
  async function finish(method: string, params: Json, options: SendOptions, token: string): Promise<Outcome> {
    let rest: Json = {};
    for (let round = 0; round < maxRounds; round++) {
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
    return { kind: "error", message: `The server requested input ${maxRounds} times, which is the limit`, ms: 0 };
  }

  /** Shows progress and log messages. */
  function showUpdates(news: Element): { token: string; onNotification: SendOptions["onNotification"] } {
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
        const what = typeof data === "string" ? serverText(data) : h("code", {}, escapeInvisible(JSON.stringify(data)));
        const mark = h("span.level", {}, escapeInvisible(level));
        if (/^(error|critical|alert|emergency)$/.test(String(level))) mark.classList.toggle("bad", true);
        messages.append(
          h("li", {}, mark, from === undefined ? undefined : h("span.muted", {}, serverText(from)), what),
        );
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
        ...note === undefined ? [] : [" · ", serverText(note)],
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
    return [head, ...present(result), show.fold("Full result as JSON", () => show.json(result))];
  }

  function toHead(state: string, kind: string, facts: string): Element {
    return h("div.head", {}, h(`span.state.${kind}`, {}, state), h("span.muted", {}, facts));
  }
}
