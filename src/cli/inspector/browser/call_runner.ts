/**
 * Runs calls. Shows the input requests, progress, log messages and result of each call.
 *
 * @see specification/2026-07-28/basic/patterns/mrtr
 */
import { type Call, type CallEnd, recordCall } from "./call_history.ts";
import { addToCall } from "./call_light.ts";
import { makeFold, showError, showJson, showText } from "./content_view.ts";
import { escapeInvisible, h, makeButton, serverText } from "./dom.ts";
import type { Outcome } from "./exchange.ts";
import { formatMs, formatSize, type Json, toCompact, toObject, toText } from "./json.ts";
import { askUser } from "./question_dialogs.ts";
import { send, type SendOptions } from "./rpc_client.ts";
import { TaskFollower } from "./task_follower.ts";

export interface CallRequest {
  readonly method: string;
  readonly params: Json;
  readonly paramHeaders?: SendOptions["paramHeaders"];
  readonly present: (result: Json) => readonly HTMLElement[];
  /** The call to record in the history. */
  readonly call: Call;
}

const MAX_ROUNDS = 64;
let calls = 0;

/** An invisible element that announces results to screen readers. */
export const announcer: HTMLElement = h("div.unseen", { role: "status" });

/** Runs one call at a time and shows its result. */
export class Runner {
  /** The buttons that start and stop a call. */
  readonly actions: HTMLElement;
  readonly output: HTMLElement = h("section.output", { "aria-label": "Result" });
  readonly #verb: string;
  readonly #start: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  #running: AbortController | undefined;

  /** Creates a runner. `verb` is the label of the button that starts a call. */
  constructor(verb: string) {
    this.#verb = verb;
    this.#start = h("button.primary", { type: "submit" }, verb);
    this.#stop = makeButton("button", "Stop", () => this.#running?.abort());
    this.#stop.hidden = true;
    this.actions = h("div.actions", this.#start, this.#stop);
  }

  /** Sends a request and shows the result. Does nothing while a call is running. */
  async run(request: CallRequest): Promise<void> {
    if (this.#running) return;
    const { signal } = this.#running = new AbortController();
    const began = performance.now();
    const call = `p${++calls}`;
    const news = new News(call);
    const clock = h("span.muted");
    addToCall(this.output, call);
    this.output.replaceChildren(h("div.head", h("span.state.running", "Running"), clock), news.element);
    this.output.scrollIntoView({ block: "nearest" });
    this.#stop.hidden = false;
    this.#start.ariaDisabled = "true";
    const timer = setInterval(() => clock.textContent = formatMs(performance.now() - began), 100);
    const outcome = await finish(request, news, signal);
    clearInterval(timer);
    this.#running = undefined;
    this.#stop.hidden = true;
    this.#start.removeAttribute("aria-disabled");
    this.#show(request, outcome, { news, ms: performance.now() - began });
  }

  #show({ call, present }: CallRequest, outcome: Outcome, { news, ms }: { news: News; ms: number }): void {
    const end = { ...toEnd(outcome, ms), call: news.token };
    const facts = outcome.kind === "result" ? [`${formatSize(outcome.size)} characters`] : [];
    const words = [formatMs(ms), ...facts].join(" · ");
    const head = h("div.head", h(`span.state.${end.kind}`, end.state), h("span.muted", words));
    this.output.replaceChildren(head, news.element, ...toBody(outcome, present));
    // If the result is too long for the view, scroll to its beginning.
    const room = this.output.closest(".detail")?.clientHeight ?? innerHeight;
    this.output.scrollIntoView({ block: this.output.offsetHeight > room ? "start" : "nearest" });
    announcer.textContent = `${this.#verb}: ${end.state}, ${words}`;
    recordCall(call, end);
  }
}

function toEnd(outcome: Outcome, ms: number): Omit<CallEnd, "call"> {
  if (outcome.kind === "stopped") return { state: "Stopped", kind: "stopped", ms };
  if (outcome.kind === "error") return { state: "Failed", kind: "bad", ms };
  const isError = outcome.result.isError === true;
  return { state: isError ? "Tool error" : "Done", kind: isError ? "bad" : "good", ms };
}

function toReason(why: string): HTMLElement {
  return h(
    "section",
    { "aria-label": "Why it failed" },
    h("p.muted", "The reason for the error, which only this page shows:"),
    showText(why),
  );
}

function toBody(outcome: Outcome, present: CallRequest["present"]): readonly HTMLElement[] {
  if (outcome.kind === "stopped") return [];
  const why = outcome.why === undefined ? [] : [toReason(outcome.why)];
  if (outcome.kind === "error") return [showError(outcome), ...why];
  const { result } = outcome;
  return [...present(result), ...why, makeFold("Full result as JSON", () => showJson(result))];
}

/** Sends the request, and sends it again with the user's answers until the server returns a result. */
async function finish(
  { method, params, paramHeaders }: CallRequest,
  news: News,
  signal: AbortSignal,
): Promise<Outcome> {
  const { token: call } = news;
  const _meta = { progressToken: call };
  const onNotification = (method: string, params: Json) => news.show(method, params);
  let rest: Json = {};
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const outcome = await send(method, { ...params, ...rest, _meta }, { signal, call, paramHeaders, onNotification });
    if (outcome.kind !== "result") return outcome;
    if (outcome.result.resultType === "task") return await news.follow(outcome.result, signal);
    if (outcome.result.resultType !== "input_required") return outcome;
    const { inputRequests, requestState } = outcome.result;
    const inputResponses: [string, Json][] = [];
    for (const [key, asked] of Object.entries(toObject(inputRequests))) {
      const { method, params } = toObject(asked);
      const response = await askUser(String(method), toObject(params));
      if (!response) return { kind: "stopped", ms: outcome.ms };
      inputResponses.push([key, response]);
    }
    rest = {
      ...inputResponses.length ? { inputResponses: Object.fromEntries(inputResponses) } : {},
      ...requestState === undefined ? {} : { requestState },
    };
  }
  return { kind: "error", message: `The server requested input ${MAX_ROUNDS} times; this is the maximum`, ms: 0 };
}

/** Shows the progress and the log messages of a call. */
class News {
  readonly element: HTMLElement = h("div.news");
  /** The progress token, which is also the name of the call in the log. */
  readonly token: string;
  readonly #bar = h("progress", { "aria-label": "Progress" });
  readonly #words = h("span");
  readonly #row = h("div.progress", this.#bar, this.#words);
  readonly #messages = h("ul.messages", { "aria-label": "Log messages" });

  constructor(token: string) {
    this.token = token;
  }

  async follow(handle: Json, signal: AbortSignal): Promise<Outcome> {
    const follower = new TaskFollower(handle, { signal, call: this.token });
    this.element.prepend(follower.element);
    return await follower.follow(handle);
  }

  show(method: string, params: Json): void {
    if (method === "notifications/progress" && params.progressToken === this.token) this.#showProgress(params);
    if (method === "notifications/message") this.#showMessage(params);
  }

  #showMessage({ level, logger, data }: Json): void {
    if (!this.#messages.childElementCount) this.element.append(this.#messages);
    const isBad = /^(error|critical|alert|emergency)$/.test(String(level));
    const from = toText(logger);
    this.#messages.append(h(
      "li",
      h(isBad ? "span.level.bad" : "span.level", escapeInvisible(level)),
      from !== undefined && h("span.muted", serverText(from)),
      typeof data === "string" ? serverText(data) : h("code", escapeInvisible(toCompact(data))),
    ));
  }

  #showProgress({ progress, total, message }: Json): void {
    if (!this.#row.isConnected) this.element.append(this.#row);
    const isKnown = typeof total === "number" && total > 0;
    if (isKnown && typeof progress === "number") {
      this.#bar.max = total;
      this.#bar.value = Math.max(0, Math.min(progress, total));
    } else this.#bar.removeAttribute("value");
    const note = toText(message);
    this.#words.replaceChildren(
      `${progress}${isKnown ? ` of ${total}` : ""}`,
      ...note === undefined ? [] : [" · ", serverText(note)],
    );
  }
}
