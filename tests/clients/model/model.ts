// A model that plays a script instead of thinking, and records what a client lets the model see.
import { openHttpServer } from "../../../src/testing/http_server.ts";
import { anthropic } from "./anthropic.ts";
import { completions } from "./completions.ts";
import { gemini } from "./gemini.ts";
import { responses } from "./responses.ts";
import type { ModelApi, ModelCall, OfferedTool, Reply, Seen, Turn } from "./turn.ts";

const apis: readonly ModelApi[] = [anthropic, responses, completions, gemini];

/** A call that the model makes. */
export interface ScriptCall {
  /** The name of the step in the recording. */
  readonly step: string;
  /** The name of the tool on the server. */
  readonly tool: string;
  readonly args?: object;
}

/** What the model has recorded. */
export interface Recording {
  /** All requests with tools, and their tools. */
  readonly turns: Turn[];
  /** What the model saw of the results, by step. */
  readonly seen: Map<string, Seen>;
  /** The tools that the model called, by step. */
  readonly called: Map<string, OfferedTool>;
  /** Steps whose tool the client did not offer. */
  readonly missing: string[];
  /** Requests that no API understood. */
  readonly unknown: string[];
  /** Whether the script was played to its end. */
  isDone: boolean;
}

/** A running model. Disposing stops the model. */
export interface Model extends AsyncDisposable {
  readonly url: string;
  readonly recording: Recording;
}

/** Tools with which clients load the definitions of other tools. */
const SEARCH_TOOLS = ["ToolSearch", "tool_search"];
/** The tool with which a client calls tools that it has not loaded. */
const BRIDGE_TOOL = "tool_call";
/** Searches for one tool. A client may connect to the server while the first search runs. */
const MAX_SEARCHES = 2;

/** Starts a model that makes the calls of a script, and then ends the conversation. */
export async function startModel(script: readonly ScriptCall[]): Promise<Model> {
  const recording: Recording = {
    ...{ turns: [], seen: new Map(), called: new Map(), missing: [], unknown: [] },
    isDone: false,
  };
  const player = new Player(script, recording);
  const server = await openHttpServer((request) => respond(request, player, recording));
  return { url: server.origin, recording, [Symbol.asyncDispose]: () => server.stop() };
}

async function respond(request: Request, player: Player, { unknown }: Recording): Promise<Response> {
  const { pathname } = new URL(request.url);
  const text = await request.text();
  // Some clients ask which models there are, or whether the model is reachable.
  if (/\/models$/.test(pathname)) return Response.json({ object: "list", data: MODELS, models: [] });
  if (/count_tokens$|:countTokens$/.test(pathname)) return Response.json({ input_tokens: 10, totalTokens: 10 });
  const body = parse(text);
  for (const api of apis) {
    const turn = body && api.readTurn(pathname, body);
    if (turn) return api.toResponse(player.play(turn), turn, body);
  }
  unknown.push(`${request.method} ${pathname}`);
  return Response.json({ error: { type: "not_found_error", message: "not part of the fake model" } }, { status: 404 });
}

const MODELS = [{ id: "fake", object: "model", created: 1, owned_by: "tests" }];

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return;
  }
}

/** Plays the script. A client may send other requests in between, for example to name the conversation. */
class Player {
  readonly #script: ScriptCall[];
  readonly #recording: Recording;
  #pending?: { readonly call: ModelCall; readonly step?: string };
  #searches = 0;

  constructor(script: readonly ScriptCall[], recording: Recording) {
    this.#script = [...script];
    this.#recording = recording;
  }

  play(turn: Turn): Reply {
    if (!turn.tools.length) return { text: "ok" };
    this.#recording.turns.push(turn);
    if (this.#pending) {
      const { call, step } = this.#pending;
      const seen = turn.toSeen(call.id);
      if (!seen) return { text: "ok" };
      if (step !== undefined) this.#recording.seen.set(step, seen);
      this.#pending = undefined;
    }
    for (let next = this.#script[0]; next; next = this.#script[0]) {
      const tool = findTool(turn.tools, next.tool);
      const search = tool ? undefined : this.#toSearch(turn, next.tool);
      if (search) return this.#call({ call: search });
      const call = tool ? { id: toId(), tool, args: next.args ?? {} } : toBridgeCall(turn, next);
      this.#script.shift();
      this.#searches = 0;
      if (!call) this.#recording.missing.push(next.step);
      else {
        this.#recording.called.set(next.step, tool ?? { ...call.tool, name: findDeferred(turn, next.tool) ?? "" });
        return this.#call({ call, step: next.step });
      }
    }
    this.#recording.isDone = true;
    return { text: "The script has ended." };
  }

  #call(pending: { readonly call: ModelCall; readonly step?: string }): Reply {
    this.#pending = pending;
    return { call: pending.call };
  }

  /** Returns a call that loads a tool whose definition the client holds back, if the client has a tool for this. */
  #toSearch(turn: Turn, name: string): ModelCall | undefined {
    const tool = findSearchTool(turn.tools);
    if (!tool || this.#searches++ >= MAX_SEARCHES) return;
    return { id: toId(), tool, args: { query: `select:${findDeferred(turn, name) ?? name}`, max_results: 5 } };
  }
}

/** Finds the tool of a server among the tools of a client, which may have a prefix and other punctuation. */
export function findTool(tools: readonly OfferedTool[], name: string): OfferedTool | undefined {
  const normal = (text: string) => text.replace(/\W/g, "_");
  return tools.find((tool) => tool.name === name) ??
    tools.find((tool) => new RegExp(`(^|[_-])${normal(name)}$`).test(normal(tool.name)));
}

/** Finds the tool with which a client loads the definitions of other tools. */
export function findSearchTool(tools: readonly OfferedTool[]): OfferedTool | undefined {
  return tools.find(({ name }) => SEARCH_TOOLS.includes(name));
}

/** Finds the name of a tool whose definition a client holds back. The client lists such names in a text. */
function findDeferred({ text }: Turn, name: string): string | undefined {
  return new RegExp(`\\bmcp__\\w+_${name}\\b`).exec(text)?.[0];
}

/** Returns a call that a client passes on to a tool whose definition it holds back. */
function toBridgeCall(turn: Turn, { tool: name, args = {} }: ScriptCall): ModelCall | undefined {
  const full = findDeferred(turn, name);
  const tool = turn.tools.find((tool) => tool.name === BRIDGE_TOOL);
  return full && tool ? { id: toId(), tool, args: { name: full, arguments: args } } : undefined;
}

function toId(): string {
  return `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 20)}`;
}
