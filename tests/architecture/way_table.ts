// The table of the ways to reach a handler and the steps that stand around it. For each step, it lists the ways on which
// the step runs, and the reason on all other ways.

import type { Steps } from "../../src/layers/layers.ts";

/** The ways to reach a handler. */
export const WAY_NAMES = {
  tool: "a request for a tool",
  prompt: "a request for a prompt",
  resource: "a request for a resource",
  session: "a request for a tool in a session",
  innerCall: "a tool that a handler calls",
  innerPrompt: "a prompt that a handler gets",
  innerRead: "a resource that a handler reads",
  innerCompletion: "a completion that a handler requests",
  innerList: "a list that a handler reads",
  relay: "a tool that a search passes a call on to",
  task: "a call that becomes a task",
  takeOver: "a task that another instance takes over",
  recheck: "a call that waits in a queue",
  probe: "a request for a task, which checks whether the caller may call the task's tool",
  completion: "a completion",
  chain: "the second resource provider of a scheme",
  listen: "the request for a subscription",
  notification: "a notification of a subscription",
  list: "a list",
  page: "the next page of a list",
  extension: "a call that an extension makes",
} as const;

export type WayName = keyof typeof WAY_NAMES;

/**
 * The steps of layers. `argument` and `member` are no steps: the input schema takes the argument, and `result` sets the
 * member. `timeoutMs` has the name `layerTimeout` here, and the other members of a layer are no steps.
 */
type LayerStep = Exclude<
  keyof Steps,
  | "name"
  | "start"
  | "methods"
  | "timeoutMs"
  | "rerun"
  | "ttlMs"
  | "rank"
  | "argument"
  | "member"
  | "list"
  | "requires"
  | "handlers"
  | "verify"
  | "warn"
>;

/** The steps around a handler, in the order in which they run. */
export const STEP_NAMES = {
  admit: "the server's `admit`",
  unknownRules: "waiting for the rules that all instances share",
  disabled: "a rule that all instances share",
  allow: "`allow`",
  allowTimeout: "the time limit of `allow`",
  allowQuestions: "the refusal of questions in `allow`",
  headers: "parameters in headers",
  scopes: "`scopes`",
  requires: "`requires`",
  limit: "the step `limit` of layers",
  limitTimeout: "the time limit of the step `limit`",
  restore: "restoring the answers and values of an earlier run",
  slot: "a slot of `calls.running`",
  observer: "the events of observers",
  enter: "the step `enter` of layers",
  layerTimeout: "`timeoutMs` of layers",
  timeout: "`calls.timeoutMs`",
  aroundExtension: "the step `around` of layers of extensions",
  around: "the server's middleware",
  input: "the input schema",
  onInput: "the step `onInput` of layers",
  inside: "the step `inside` of layers",
  key: "the step `key` of layers",
  run: "the step `run` of layers, in the order of the ranks",
  reads: "the record of what the handler has read",
  onOutput: "the step `onOutput` of layers",
  output: "the output schema",
  result: "the step `result` of layers",
} as const satisfies Readonly<Record<string, string>> & Record<LayerStep, string>;

export type StepName = keyof typeof STEP_NAMES;

/** Ways with the reason that they share. */
type Reasons = Readonly<Record<string, readonly WayName[]>>;

/** One step on all ways. Each way is listed once. */
export interface Row {
  /** The ways on which the step runs. A test checks each of them. */
  readonly runs: readonly WayName[];
  /** The ways on which the step does not run, by reason. A test checks that the step would not stop them. */
  readonly skipped?: Reasons;
  /** The ways on which nothing could be checked, by reason. */
  readonly absent?: Reasons;
}

/** The ways that make one call of a handler. */
const CALLS = [
  "tool",
  "prompt",
  "resource",
  "session",
  "innerCall",
  "innerPrompt",
  "innerRead",
  "relay",
  "task",
  "takeOver",
  "recheck",
  "chain",
  "extension",
] as const;
/** The ways that only show the handler, and do not run it. */
const SHOWN = ["list", "page", "innerList"] as const;
const SUBSCRIBED = ["listen", "notification"] as const;
const COMPLETIONS = ["completion", "innerCompletion"] as const;
const INNER = ["innerCall", "innerPrompt", "innerRead"] as const;
/** The calls of a tool. */
const TOOLS = ["tool", "session", "innerCall", "relay", "task", "takeOver", "recheck", "extension"] as const;

const NO_RUN: Reasons = {
  "a probe runs no handler": ["probe"],
  "a list runs no handler": SHOWN,
  "a subscription runs no handler": SUBSCRIBED,
};

const NO_TOOL: Reasons = { "only a tool has the step": ["prompt", "resource", "innerPrompt", "innerRead", "chain"] };

/** The reasons for a step that stands around the handler's function, and not around its completion. */
const NO_COMPLETION = {
  "a completer gets an unfinished argument, and what it returns is no output of the handler": COMPLETIONS,
} as const;

const LIMIT: Row = {
  runs: ["tool", "prompt", "resource", "session", ...INNER, "relay", "task", ...COMPLETIONS, "chain"],
  skipped: {
    "the step has counted the call when its task began": ["takeOver"],
    "the step has counted the call before it waited": ["recheck"],
    "rates limit clients, and no client makes the call": ["extension"],
  },
  absent: NO_RUN,
};

export const TABLE: Readonly<Record<StepName, Row>> = {
  admit: {
    runs: [
      "tool",
      "prompt",
      "resource",
      "session",
      "relay",
      "task",
      "probe",
      "completion",
      "chain",
      "listen",
      "list",
      "page",
    ],
    skipped: {
      "the server has admitted the request of the outer call": [...INNER, "innerCompletion", "innerList"],
      "no client makes a request": ["takeOver", "extension"],
      "the server has admitted the request before it waited": ["recheck"],
      "the server has admitted the request for the subscription": ["notification"],
    },
  },
  unknownRules: {
    runs: [
      "tool",
      "prompt",
      "resource",
      "session",
      ...INNER,
      "relay",
      "task",
      "takeOver",
      "probe",
      ...COMPLETIONS,
      "chain",
      "listen",
      ...SHOWN,
      "extension",
    ],
    skipped: {
      "the request has waited for the rules before it waited in the queue": ["recheck"],
      "the request for the subscription has waited for the rules": ["notification"],
    },
  },
  disabled: {
    runs: [...CALLS, "probe", ...COMPLETIONS, "notification", ...SHOWN],
    skipped: { "a subscription to any URI is granted, so that no caller finds out which URIs exist": ["listen"] },
  },
  allow: {
    runs: [...CALLS, "probe", ...COMPLETIONS, "notification", ...SHOWN],
    skipped: { "a subscription to any URI is granted, so that no caller finds out which URIs exist": ["listen"] },
  },
  allowTimeout: {
    runs: [...CALLS, "probe", ...COMPLETIONS, ...SHOWN],
    skipped: { "a subscription to any URI is granted without `allow`": ["listen"] },
    absent: { "nobody waits for a notification": ["notification"] },
  },
  allowQuestions: {
    runs: [...CALLS.filter((way) => way !== "relay"), "probe", ...COMPLETIONS, "notification", ...SHOWN],
    skipped: { "a subscription to any URI is granted without `allow`": ["listen"] },
    absent: { "the search first looks up the tool in its own call, which can ask": ["relay"] },
  },
  headers: {
    runs: ["tool", "task"],
    skipped: {
      "revisions with sessions have no parameters in headers": ["session"],
      "a call without a request of its own has no headers": ["innerCall", "takeOver", "extension"],
      "the headers belong to the tool of the search": ["relay"],
    },
    absent: {
      "only the input schema of a tool has parameters in headers": [
        "prompt",
        "resource",
        "innerPrompt",
        "innerRead",
        ...COMPLETIONS,
        "chain",
      ],
      "headers do not change while the call waits": ["recheck"],
      ...NO_RUN,
    },
  },
  scopes: {
    runs: [...CALLS, "probe", ...COMPLETIONS, "notification"],
    skipped: {
      "a list shows what needs further scopes, so that a client can ask for them": SHOWN,
      "a subscription to any URI is granted, and each notification is checked": ["listen"],
    },
  },
  requires: {
    runs: CALLS,
    skipped: {
      "a client that only reads a result answers no questions": ["probe"],
      "a completer cannot ask": COMPLETIONS,
      "a list shows what needs further capabilities": SHOWN,
      "a subscription asks nothing": SUBSCRIBED,
    },
  },
  limit: { runs: LIMIT.runs, skipped: { ...LIMIT.skipped, ...NO_RUN } },
  limitTimeout: LIMIT,
  restore: {
    runs: ["tool", "prompt", "resource", ...INNER, "relay", "takeOver", "recheck", "chain"],
    skipped: { "the handler waits for the answers, and runs only once": ["session", "task"] },
    absent: {
      "a completer cannot ask": COMPLETIONS,
      "there is no client to ask, and no earlier run": ["extension"],
      ...NO_RUN,
    },
  },
  slot: {
    runs: ["tool", "prompt", "resource", "session", "recheck", "probe", "completion", "chain", "list", "page"],
    skipped: {
      "the call runs in the slot of the outer call": [...INNER, "innerCompletion", "innerList", "relay"],
      "the handler continues after the response, and counts towards `calls.detached`": ["task"],
      "the call counts towards `calls.detached`": ["takeOver", "extension"],
      "a subscription may last for days, and counts towards `connections.streams`": SUBSCRIBED,
    },
  },
  observer: {
    runs: [...CALLS, ...COMPLETIONS, "listen", ...SHOWN],
    skipped: {
      "the request for the task has events of its own": ["probe"],
      "a notification belongs to the call of the subscription": ["notification"],
    },
  },
  enter: { runs: [...CALLS, ...COMPLETIONS], skipped: NO_RUN },
  layerTimeout: {
    runs: [...CALLS.filter((way) => way !== "task" && way !== "takeOver"), ...COMPLETIONS],
    skipped: { "a task runs until its `ttlMs`": ["task", "takeOver"] },
    absent: NO_RUN,
  },
  timeout: {
    runs: [...CALLS.filter((way) => way !== "task" && way !== "takeOver"), ...COMPLETIONS],
    skipped: { "a task runs until its `ttlMs`": ["task", "takeOver"] },
    absent: NO_RUN,
  },
  aroundExtension: {
    runs: CALLS,
    skipped: { "layers of extensions stand around calls of handlers": COMPLETIONS, ...NO_RUN },
  },
  around: {
    runs: [...CALLS, "probe", ...COMPLETIONS, "listen", ...SHOWN],
    skipped: { "the middleware runs around the whole subscription": ["notification"] },
  },
  input: {
    runs: CALLS.filter((way) => way !== "chain"),
    skipped: { ...NO_COMPLETION, ...NO_RUN },
    absent: { "a provider gets the URI": ["chain"] },
  },
  onInput: { runs: CALLS, skipped: { ...NO_COMPLETION, ...NO_RUN } },
  inside: { runs: CALLS, skipped: { ...NO_COMPLETION, ...NO_RUN } },
  key: { runs: TOOLS, absent: { ...NO_TOOL, ...NO_COMPLETION, ...NO_RUN } },
  run: { runs: TOOLS, absent: { ...NO_TOOL, ...NO_COMPLETION, ...NO_RUN } },
  reads: {
    runs: [...CALLS, "innerCompletion", "innerList", "probe"],
    absent: {
      "nothing of a completion outlives its response": ["completion"],
      "nothing of a list outlives its response": ["list", "page"],
      "a subscription runs no handler": SUBSCRIBED,
    },
  },
  onOutput: { runs: CALLS, skipped: { ...NO_COMPLETION, ...NO_RUN } },
  output: { runs: TOOLS, absent: { ...NO_TOOL, ...NO_COMPLETION, ...NO_RUN } },
  result: { runs: [...CALLS, ...COMPLETIONS], skipped: NO_RUN },
};
