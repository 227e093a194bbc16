/**
 * One HTTP request and as much of its answer as is wanted, in bounded time.
 *
 * @module
 */
import { readEvents } from "../../client/event_stream.ts";
import { type Message, readMessages } from "../../client/message.ts";
import { startTimer } from "../../client/delay.ts";

/** Where requests go. */
export interface Place {
  readonly url: string;
  readonly fetch: (request: Request) => Promise<Response>;
  /** Headers of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds for each request. */
  readonly timeoutMs: number;
  /** Gives up whatever is under way. */
  readonly signal?: AbortSignal;
}

/** What is sent. */
export interface Sent {
  /** `POST` if nothing is said. */
  readonly method?: string;
  /** Headers beside those of every request; `null` takes one away. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string;
}

/** What came back. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The body, as far as it was read; empty for a stream. */
  readonly text: string;
  /** The JSON-RPC answer in the body or the stream. */
  readonly message?: Message;
  readonly isStream: boolean;
  /** Whether the time was over before the body. */
  readonly isCut: boolean;
  /** Milliseconds until all was read. */
  readonly ms: number;
}

/** No answer came. */
export class Lost extends Error {
  override readonly name = "Lost";
  /** What happened, in one sentence. */
  readonly what: string;
  /** How to mend it, in one sentence. */
  readonly mend: string;

  constructor(what: string, mend: string, cause?: unknown) {
    super(what, { cause });
    this.what = what;
    this.mend = mend;
  }
}

/** Bytes of a body that are read. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Sends a request and reads the answer. @throws {Lost} if none comes. */
export async function exchange(place: Place, sent: Sent): Promise<Answer> {
  const started = performance.now();
  const opened = await open(place, sent);
  const { response: { status, headers }, isStream } = opened;
  let [text, message, isCut]: [string, Message | undefined, boolean] = ["", undefined, false];
  try {
    if (isStream) message = await opened.inTime(readAnswer(opened));
    else text = await opened.inTime(readStart(opened.response));
  } catch {
    // What was said in the head is an answer, too.
    isCut = true;
  } finally {
    opened.close();
  }
  return {
    status,
    headers,
    text,
    message: message ?? readMessage(text),
    isStream,
    isCut,
    ms: performance.now() - started,
  };
}

/** An answer whose body is still to be read. */
export interface Opened {
  readonly response: Response;
  readonly isStream: boolean;
  /** Milliseconds until the head was there. */
  readonly ms: number;
  readonly signal: AbortSignal;
  /** Waits no longer than the request may take, head and body together. */
  inTime<T>(coming: Promise<T>): Promise<T>;
  /** Lets the answer take as long as it wants to. */
  keep(): void;
  close(): void;
}

/** Sends a request and waits for the head of the answer. @throws {Lost} if none comes. */
export async function open(place: Place, { method = "POST", headers = {}, body }: Sent): Promise<Opened> {
  const { url, timeoutMs, signal } = place;
  const all = new Headers(place.headers);
  for (const [name, value] of Object.entries(headers)) value === null ? all.delete(name) : all.set(name, value);
  const stop = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  late.catch(() => {});
  const giveUp = (error: Lost) => {
    reject(error);
    stop.abort(error);
  };
  const stopTimer = startTimer(timeoutMs, () => giveUp(toLate(timeoutMs)));
  const onStop = () => giveUp(new Lost("it was not looked at to the end", "look again"));
  if (signal?.aborted) onStop();
  else signal?.addEventListener("abort", onStop);
  const close = () => {
    stopTimer();
    signal?.removeEventListener("abort", onStop);
    stop.abort();
  };
  const started = performance.now();
  const inTime = <T>(coming: Promise<T>) => Promise.race([coming, late]);
  try {
    const request = new Request(url, { method, headers: all, body, signal: stop.signal, redirect: "manual" });
    const response = await inTime(place.fetch(request));
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    return { response, isStream, ms: performance.now() - started, signal: stop.signal, inTime, keep: stopTimer, close };
  } catch (error) {
    close();
    throw error instanceof Lost ? error : toLost(error, url);
  }
}

function toLate(ms: number): Lost {
  return new Lost(
    `no answer came in ${ms / 1000} s`,
    "look whether the server is busy, or waits for something; --timeout N waits for N seconds",
  );
}

async function readAnswer({ response, signal }: Opened): Promise<Message | undefined> {
  for await (const { data } of readEvents(response, signal)) {
    const message = data === undefined ? undefined : readMessage(data);
    if (message && message.method === undefined) return message;
  }
}

async function readStart({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > MOST_BYTES) break;
  }
  return text + decoder.decode();
}

function readMessage(text: string): Message | undefined {
  try {
    return readMessages(text)[0];
  } catch {
    return undefined;
  }
}

// The runtimes have no codes in common for why a connection failed; some say it in the error's cause alone.
function toLost(error: unknown, url: string): Lost {
  const { host, hostname, protocol } = new URL(url);
  const text = tellError(error);
  const lost = (what: string, mend: string) => new Lost(what, mend, error);
  if (/dns error|ENOTFOUND|EAI_AGAIN|getaddrinfo|lookup address/i.test(text)) {
    return lost(`the name ${hostname} has no address`, "check how it is spelled, and that this machine is online");
  }
  if (/NotCapable|Requires net access/i.test(text)) {
    return lost(`this program may not use the network: ${text}`, `start it with --allow-net=${host}`);
  }
  if (/refused/i.test(text)) {
    return lost(
      `nothing listens at ${host}`,
      "start the server, and compare the port with the one that it prints; in a container it must listen on 0.0.0.0",
    );
  }
  if (/certificate|cert_|self.signed|UNABLE_TO_VERIFY|ALTNAME|UnknownIssuer|NotValidFor|Expired/i.test(text)) {
    return lost(
      `its certificate is not accepted: ${text}`,
      "use one that clients trust for this name; for one of your own set DENO_CERT, or NODE_EXTRA_CA_CERTS on Bun",
    );
  }
  if (protocol === "https:" && /InvalidContentType|corrupt message|EPROTO|handshake|wrong version/i.test(text)) {
    return lost(`${host} does not speak TLS`, `write http:// in place of https://, or put TLS in front of the server`);
  }
  if (protocol === "http:" && /invalid HTTP|malformed|parse|unexpected message|closed|reset/i.test(text)) {
    return lost(
      `${host} closed the connection or answered with something that is not HTTP`,
      "write https:// if it speaks TLS; otherwise look into the server's log",
    );
  }
  return lost(`the request failed: ${text}`, "check the address, and look into the server's log");
}

function tellError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? ` (${error.code})` : "";
  const cause = error.cause === undefined ? "" : `: ${tellError(error.cause)}`;
  // Deno puts the cause behind words that say nothing.
  const message = error.message.replace(
    /^(fetch failed|error sending request for url .*?\)|client error \(\w+\)):? ?/i,
    "",
  );
  return `${message}${code}${cause}`;
}
