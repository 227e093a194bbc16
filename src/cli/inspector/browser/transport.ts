/**
 * Sends messages to the server: directly to the server of the page, and through the relay to other servers.
 *
 * @module
 */
import type { Credentials } from "./credentials.ts";
import type { Json, JsonTools } from "./json_tools.ts";

/** Called for a request of the server that belongs to no call. */
export type OnQuestion = (method: string, params: Json, signal: AbortSignal) => Promise<Json | undefined>;

/** The transport. */
export interface Transport {
  /** Sends a request. Throws if the server cannot be reached. */
  post(body: string, options: PostOptions): Promise<Response>;
  /** Reads the data of the events in a response. */
  events(response: Response): AsyncGenerator<string>;
}

/** Options of a request. */
export interface PostOptions {
  /** The protocol headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Dependencies. */
export interface TransportParts {
  readonly access: Credentials;
  readonly json: JsonTools;
  /** The endpoint path of the server that serves the page. */
  readonly endpoint: string | undefined;
  /** The capabilities of the page. */
  readonly capabilities: () => Json;
  readonly onQuestion: OnQuestion;
  readonly onWarning: (text: string) => void;
}

/** Makes the line. */
export function createTransport(parts: TransportParts): Transport {
  const { access, json: { isObject, parse }, endpoint, capabilities, onQuestion, onWarning } = parts;
  const relay = "/-/inspector/";
  const gone = "The connection has ended";
  let opening: Promise<string> | undefined;

  async function post(body: string, { headers, signal }: PostOptions): Promise<Response> {
    if (access.place.kind === "own" && endpoint !== undefined) {
      // Following a redirect would send the headers to its target.
      const redirect = "error";
      return await fetch(endpoint, {
        method: "POST",
        headers: { ...access.headers, ...headers },
        body,
        signal,
        cache: "no-store",
        credentials: "same-origin",
        redirect,
      });
    }
    const response = await ask("send", body, { signal, connection: await connect() });
    if (response.status !== 404) return response;
    opening = undefined;
    return await ask("send", body, { signal, connection: await connect() });
  }

  function ask(
    action: string,
    body: string,
    { signal, connection }: { readonly signal?: AbortSignal; readonly connection?: string },
  ): Promise<Response> {
    if (access.key === undefined) {
      throw new Error(
        "The page has no key; open the complete link that the terminal shows, including the part after #",
      );
    }
    const headers = {
      "content-type": "application/json",
      "x-inspector-key": access.key,
      ...connection === undefined ? {} : { "x-inspector-connection": connection },
    };
    return fetch(relay + action, {
      method: "POST",
      headers,
      body,
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  }

  /** Returns the ID of the connection. Opens a connection if there is none. */
  function connect(): Promise<string> {
    if (opening) return opening;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const mine = opening = promise;
    follow(resolve).then(() => reject(new Error(gone)), reject).finally(() => {
      if (opening === mine) opening = undefined;
    });
    return promise;
  }

  /** Reads the events of the connection until it ends. */
  async function follow(opened: (id: string) => void): Promise<void> {
    const { place, headers } = access;
    const url = place.kind === "url" ? { url: place.url } : {};
    const response = await ask("connect", JSON.stringify({ ...url, headers, capabilities: capabilities() }), {});
    if (!response.ok) throw new Error(readProblem(await response.text()));
    const questions = new Map<string, AbortController>();
    let id = "";
    try {
      for await (const data of events(response)) {
        const parsed = parse(data);
        const event = "value" in parsed && isObject(parsed.value) ? parsed.value : {};
        const key = String(event.key);
        if (event.kind === "opening") id = String(event.id);
        if (event.kind === "open") opened(id);
        if (event.kind === "failed") throw new Error(String(event.message));
        if (event.kind === "warning") onWarning(String(event.text));
        if (event.kind === "withdrawn") questions.get(key)?.abort();
        if (event.kind !== "question") continue;
        const stop = new AbortController();
        questions.set(key, stop);
        void reply(id, key, event, stop.signal).finally(() => questions.delete(key));
      }
    } finally {
      for (const question of questions.values()) question.abort();
    }
  }

  async function reply(connection: string, key: string, { method, params }: Json, signal: AbortSignal): Promise<void> {
    const result = await onQuestion(String(method), isObject(params) ? params : {}, signal);
    if (signal.aborted) return;
    await ask("answer", JSON.stringify({ key, result }), { connection }).catch(() => {});
  }

  function readProblem(text: string): string {
    const parsed = parse(text);
    const problem = "value" in parsed && isObject(parsed.value) ? parsed.value.problem : undefined;
    return typeof problem === "string" ? problem : "Cannot connect: the inspector has ended";
  }

  async function* events(response: Response): AsyncGenerator<string> {
    const reader = response.body?.getReader();
    if (!reader) return;
    const decoder = new TextDecoder();
    let rest = "";
    let data: string[] = [];
    try {
      while (true) {
        const { done, value } = await reader.read();
        if (done) return;
        const lines = (rest + decoder.decode(value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
        rest = lines.pop() ?? "";
        for (const line of lines) {
          if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
          if (line || !data.length) continue;
          const text = data.join("\n");
          data = [];
          if (text) yield text;
        }
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  return { post, events };
}
