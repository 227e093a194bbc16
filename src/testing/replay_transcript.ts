/**
 * Replays a transcript: sends the client's messages to a server, and returns the server's current responses.
 */
import { isObject } from "../core/protocol/jsonrpc.ts";
import { Transcript } from "../core/kit/transcript.ts";
import { openPipe, type Pipe } from "../server/transports/channel.ts";
import type { Server } from "../server/server.ts";
import { INTERNALS } from "../core/internals.ts";

/** Milliseconds for which the player waits for an expected message. */
const WAIT_MS = 5000;

/**
 * Sends the client messages in a transcript to a server, and returns the transcript with the server's current
 * responses. If the server still responds as it did when the transcript was recorded, the result equals the given
 * transcript.
 *
 * Client messages begin with `→` and server messages with `←`, as in the output of `record` of `@x/mcp/observe`. All
 * other lines, such as comments and HTTP headers, are omitted. Before sending a client message, the function waits for
 * all server messages that precede this message in the transcript. A server message that does not arrive within 5
 * seconds is omitted from the result. Each `initialize` opens a new connection. A transcript can contain several
 * clients only if they were recorded one after the other.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { connectTest, replayTranscript } from "@x/mcp/testing";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello] });
 * await using client = await connectTest(server);
 * await client.callTool("hello");
 *
 * const [sent, received] = client.transcript;
 * const replayed = await replayTranscript(server, [sent, received]);
 * if (replayed.join() !== [sent, received].join()) throw new Error("The server has changed");
 * ```
 *
 * @throws {TypeError} if a line with `→` or `←` contains invalid JSON, if the server was created by `mount`, or if the
 * server's path has parameters.
 */
export async function replayTranscript(server: Server, transcript: string | readonly string[]): Promise<string[]> {
  const lines = readLines(transcript);
  await server[INTERNALS].load();
  const player = new Player(server);
  try {
    for (const { isSent, text } of lines) {
      if (isSent) player.send(text);
      else await player.waitFor(text);
    }
    return player.finish();
  } finally {
    player.close();
  }
}

/** A message from the server. In `text`, names replace values that differ from run to run. */
interface Heard {
  readonly text: string;
  readonly message: unknown;
}

class Player {
  readonly #server: Server;
  readonly #transcript = new Transcript();
  readonly #lines: string[] = [];
  readonly #pipes: Pipe[] = [];
  /** Received messages that are not in `#lines` yet. */
  readonly #heard: Heard[] = [];
  /** The current ids of the server's requests, by the ids in the transcript. */
  readonly #ids = new Map<string, unknown>();
  #onMessage: () => void = () => {};

  constructor(server: Server) {
    this.#server = server;
  }

  send(text: string): void {
    const message: unknown = JSON.parse(this.#transcript.reveal(text));
    this.#lines.push(`→ ${text}`);
    const isFirst = isObject(message) && message.method === "initialize";
    if (isFirst || !this.#pipes.length) this.#pipes.push(this.#open());
    const isAnswer = isObject(message) && !("method" in message);
    const key = isAnswer ? JSON.stringify(message.id) : "";
    const sent = isAnswer && this.#ids.has(key) ? { ...message, id: this.#ids.get(key) } : message;
    this.#pipes.at(-1)?.receive(JSON.stringify(sent));
  }

  /** Waits for a server message in the transcript, and adds the received message to the result. */
  async waitFor(text: string): Promise<void> {
    const expected: unknown = JSON.parse(text);
    let at = this.#find(expected);
    if (at < 0) {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        this.#onMessage();
      }, WAIT_MS);
      while (at < 0 && !isLate) {
        await new Promise<void>((resolve) => this.#onMessage = resolve);
        at = this.#find(expected);
      }
      clearTimeout(timer);
    }
    const [heard] = at < 0 ? [] : this.#heard.splice(at, 1);
    if (heard) this.#lines.push(`← ${this.#toExpectedId(heard, expected)}`);
  }

  /** Returns the new transcript. Received messages that are not in the given transcript come last. */
  finish(): string[] {
    return [...this.#lines, ...this.#heard.map(({ text }) => `← ${text}`)];
  }

  close(): void {
    for (const pipe of this.#pipes) pipe.close();
  }

  #open(): Pipe {
    return openPipe(this.#server, {
      write: (text) => {
        const message: unknown = JSON.parse(text);
        this.#heard.push({ message, text: this.#transcript.toText(message) });
        this.#onMessage();
        return undefined;
      },
    });
  }

  /**
   * Returns the index of the received message that corresponds to a message in the transcript, or -1: the response with
   * the same id, or the first message with the same method.
   */
  #find(expected: unknown): number {
    if (!isObject(expected)) return this.#heard.length ? 0 : -1;
    const { id, method } = expected;
    return this.#heard.findIndex(({ message }) =>
      isObject(message) && (method === undefined ? message.id === id && !message.method : message.method === method)
    );
  }

  #toExpectedId({ text, message }: Heard, expected: unknown): string {
    if (!isObject(expected) || !isObject(message) || !message.method || message.id === undefined) return text;
    this.#ids.set(JSON.stringify(expected.id), message.id);
    return this.#transcript.toText({ ...message, id: expected.id });
  }
}

interface Line {
  readonly isSent: boolean;
  readonly text: string;
}

function readLines(transcript: string | readonly string[]): readonly Line[] {
  const lines = typeof transcript === "string" ? transcript.split("\n") : transcript;
  return lines.flatMap((line, at) => {
    const [, direction, text] = /^([→←]) ([{[].*)$/u.exec(line) ?? [];
    if (!text) return [];
    try {
      JSON.parse(text);
    } catch (cause) {
      throw new TypeError(
        `Cannot replay the transcript: line ${at + 1} is not valid JSON; correct or remove the line`,
        { cause },
      );
    }
    return [{ isSent: direction === "→", text }];
  });
}
