/**
 * Dialogs for elicitation, sampling and roots requests.
 *
 * @see specification/2026-07-28/client/elicitation
 */
import { makeFold, showContents, showJson, showText } from "./content_view.ts";
import {
  type Child,
  escapeInvisible,
  h,
  isWebUrl,
  makeButton,
  makeLabelledField,
  makeLink,
  openDialog,
  serverText,
} from "./dom.ts";
import { makeForm } from "./forms.ts";
import { type Json, toObject, toObjects, toText } from "./json.ts";
import { getServerName } from "./server_facts.ts";

interface Question {
  readonly title: string;
  readonly body: readonly Child[];
  /** The label of each button with the function that creates the response. `false` keeps the dialog open. */
  readonly answers: readonly (readonly [name: string, answer: () => Json | false | undefined])[];
  /** The response if the user presses Escape. */
  readonly dismissed: Json | undefined;
}

const CANCELLED = { action: "cancel" };
const DECLINE_OR_CANCEL = [["Decline", () => ({ action: "decline" })], ["Cancel", () => CANCELLED]] as const;
const END = ["End the call", () => undefined] as const;

const makers: ReadonlyMap<string, (params: Json) => Question> = new Map([
  ["elicitation/create", (params) => params.mode === "url" ? makeUrlQuestion(params) : makeFormQuestion(params)],
  ["sampling/createMessage", makeSamplingQuestion],
  ["roots/list", makeRootsQuestion],
  ["inspector/signIn", makeSignInQuestion],
]);

let last: Promise<unknown> = Promise.resolve();

/**
 * Shows a request to the user after all earlier requests have been answered. Returns the response for the server, or
 * `undefined` if the user dismissed the dialog. The dialog closes when `signal` aborts.
 */
export function askUser(method: string, params: Json, signal?: AbortSignal): Promise<Json | undefined> {
  const make = makers.get(method);
  const answer = last.then(() => make && !signal?.aborted ? ask(make(params), signal) : undefined);
  last = answer;
  return answer;
}

function ask({ title, body, answers, dismissed }: Question, signal?: AbortSignal): Promise<Json | undefined> {
  const { promise, resolve } = Promise.withResolvers<Json | undefined>();
  const [[firstName, first], ...others] = answers;
  const heading = h("h2", title);
  const form = h(
    "form",
    { method: "dialog" },
    heading,
    h("p.muted", "From ", serverText(getServerName())),
    ...body,
    h(
      "div.actions",
      h("button.primary", { type: "submit" }, firstName),
      ...others.map(([name, answer]) => makeButton("button", name, () => end(answer()))),
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    end(first());
  });
  const dialog = openDialog(form, heading, () => end(dismissed));
  const withdraw = () => end(undefined);
  signal?.addEventListener("abort", withdraw);
  (form.querySelector<HTMLElement>("input, textarea, select, a") ?? form.querySelector("button"))?.focus();

  function end(answer: Json | false | undefined): void {
    if (answer === false) return;
    signal?.removeEventListener("abort", withdraw);
    dialog.close();
    resolve(answer);
  }

  return promise;
}

function makeFormQuestion({ message, requestedSchema }: Json): Question {
  const form = makeForm(toObject(requestedSchema), { isTitleFirst: true });
  const accept = () => {
    const content = form.read();
    return content ? { action: "accept", content } : false;
  };
  return {
    title: "The server asks for input",
    body: [h("p.message", serverText(message)), form.element],
    answers: [["Accept", accept], ...DECLINE_OR_CANCEL],
    dismissed: CANCELLED,
  };
}

function makeUrlQuestion({ message, url }: Json): Question {
  const address = String(url);
  const text = escapeInvisible(address);
  const shown = isWebUrl(address)
    ? [
      h("p.address", makeLink(address, text)),
      h("p.muted", "Host: ", h("strong", serverText(new URL(address).host))),
      h("p.muted", "Open the page only if you trust this host."),
    ]
    : [h("p.address", h("code", text)), h("p.muted", "This is not the URL of a web page.")];
  return {
    title: "The server asks you to open a web page",
    body: [h("p.message", serverText(message)), ...shown],
    answers: [["Accept", () => ({ action: "accept" })], ...DECLINE_OR_CANCEL],
    dismissed: CANCELLED,
  };
}

/**
 * Creates the dialog that asks whether to sign in. The request comes from the inspector's process. The sign-in
 * continues when the authorization server redirects the browser back.
 */
function makeSignInQuestion({ server, issuer, scopes, url }: Json): Question {
  const words = Array.isArray(scopes) && scopes.length
    ? scopes.map(String).join(", ")
    : "chosen by the authorization server";
  return {
    title: "Sign in",
    body: [
      h("p.message", serverText(`${server} asks you to sign in at ${issuer}.`)),
      h("p.muted", "Scopes: ", serverText(words)),
      h("p.address", makeLink(String(url), "Open the page to sign in")),
      h("p.muted", "Host: ", h("strong", serverText(new URL(String(url)).host))),
      h("p.muted", "This dialog closes when you have signed in. The page does not receive the token."),
    ],
    answers: [["Cancel", () => ({ action: "cancel" })]],
    dismissed: CANCELLED,
  };
}

function makeSamplingQuestion(params: Json): Question {
  const area = h("textarea", { rows: 4 });
  const system = toText(params.systemPrompt);
  const toAnswer = () => ({
    role: "assistant",
    content: { type: "text", text: area.value },
    model: "inspector",
    stopReason: "endTurn",
  });
  const limit = `Up to ${params.maxTokens} tokens. The inspector has no model: write the response yourself.`;
  return {
    title: "The server requests sampling",
    body: [
      system !== undefined && h("div.turn", h("strong", "system"), showText(system)),
      ...toObjects(params.messages).map(({ role, content }) =>
        h("div.turn", h("strong", serverText(role)), ...showContents(content))
      ),
      h("p.muted", escapeInvisible(limit)),
      makeLabelledField("Answer", area),
      makeFold("Full request", () => showJson(params)),
    ],
    answers: [["Answer", toAnswer], END],
    dismissed: undefined,
  };
}

function makeRootsQuestion(): Question {
  const area = h("textarea.code", { rows: 3, placeholder: "file:///home/me/project", spellcheck: "false" });
  const toRoots = () => ({
    roots: area.value.split("\n").map((line) => line.trim()).filter(Boolean).map((uri) => ({ uri })),
  });
  return {
    title: "The server requests roots",
    body: [makeLabelledField("Roots", area, h("span.type", "one file:// URI per line"))],
    answers: [["Answer", toRoots], END],
    dismissed: undefined,
  };
}
