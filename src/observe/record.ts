/**
 * An observer that records the messages of a server as a transcript.
 */
import { parseJson } from "../core/kit/json.ts";
import { checkOptions, type KnownOptions } from "../core/known_options.ts";
import type { MessageEvent, Observer } from "../server/call/observer.ts";
import { Transcript } from "../core/kit/transcript.ts";

/** Options of {@linkcode record}. */
export interface RecordOptions {
  /** Writes a line, without a line feed at its end. */
  readonly write: (line: string) => unknown;
  /** Returns the message to write, for example without secrets. Returning `undefined` or throwing omits the message. */
  readonly redact?: (message: unknown) => unknown;
}

const OPTIONS: KnownOptions<keyof RecordOptions> = {
  names: { write: "function", redact: "function" },
  hints: { sink: "write", output: "write", filter: "redact" },
};

/** Matches keys whose values are secrets, ignoring case. Does not match `progressToken` and `maxTokens`. */
const SECRET =
  /^(?!progressToken$|maxTokens$).*(token|secret|password|passwd|api[-_]?key|authorization|cookie|credential)s?$/i;
/**
 * Matches texts that can be secrets: credentials in headers, JSON Web Tokens, and secret URL parameters. Also matches
 * the start of a token without its other parts, because a pattern that requires them would search a long text again
 * from each `eyJ`.
 */
const CREDENTIAL =
  /\b(?:bearer|basic|dpop)\s+[\w.~+/=-]{8,}|(?<=(?:token|secret|password|passwd|api[-_]?key)=)[^\s&"']+|(\beyJ[\w-]+(?:\.[\w-]*){0,2}(?:\.[\w-]+){0,2})/gi;

/**
 * Maximum number of characters of a transcript's names and their values. When this number is reached, the transcript
 * discards all names and starts again, because each name keeps its value in memory.
 */
const MAX_WEIGHT = 4_000_000;

/**
 * Creates an observer that records messages as a transcript: one line per message, which begins with `→` for messages
 * from clients and `←` for messages from the server. `replayTranscript` of the test kit replays the transcript.
 *
 * The transcript contains arguments and results, but no headers. Names such as `<state 1>` and `<token 1>` replace each
 * `requestState`, values of keys such as `access_token`, `password` and `authorization`, and credentials in texts.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { record } from "@x/mcp/observe";
 * import { connectTest, replayTranscript } from "@x/mcp/testing";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const lines: string[] = [];
 * const observer = record({ write: (line) => lines.push(line) });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello], observer });
 * await using client = await connectTest(server);
 * await client.callTool("hello");
 *
 * const replayed = await replayTranscript(server, lines.slice());
 * if (replayed.join() !== lines.slice(0, 2).join()) throw new Error("The server has changed");
 * ```
 *
 * @throws {TypeError} if `write` is missing, or an option is unknown or has the wrong type.
 */
export function record(options: RecordOptions): Observer {
  checkOptions("record messages", options, OPTIONS);
  if (!options.write) {
    throw new TypeError("Cannot record messages: write is missing; pass a function that stores a line");
  }
  return new Recorder(options);
}

class Recorder implements Observer {
  readonly #options: RecordOptions;
  #transcript = new Transcript();

  constructor(options: RecordOptions) {
    this.#options = options;
  }

  message({ direction, text }: MessageEvent): unknown {
    const { write, redact } = this.#options;
    const parsed = parseJson(text);
    const message = redact && parsed !== undefined ? redact(parsed) : parsed;
    if (message === undefined) return;
    if (message instanceof Promise) {
      throw new TypeError("Cannot record a message: redact returned a promise; return the message or undefined");
    }
    if (this.#transcript.weight > MAX_WEIGHT) this.#transcript = new Transcript();
    return write(`${direction === "in" ? "→" : "←"} ${this.#transcript.toText(this.#hide(message))}`);
  }

  /** Replaces secrets with names. */
  #hide(message: unknown): unknown {
    const transcript = this.#transcript;
    const text = JSON.stringify(message, (key, value) => {
      if (SECRET.test(key) && value !== null && typeof value !== "boolean") {
        // Do not replace an object, because in a tool's schema, a property with this name is described by an object.
        return typeof value === "object" && !Array.isArray(value)
          ? value
          : transcript.name("token", JSON.stringify(value));
      }
      return typeof value === "string" && key !== "requestState" ? this.#hideInText(value) : value;
    });
    return text === undefined ? undefined : JSON.parse(text);
  }

  #hideInText(text: string): string {
    // Also search texts that are JSON, because the text of a tool result is often JSON.
    const inner = /^\s*[[{]/.test(text) ? parseJson(text) : undefined;
    if (inner === undefined) {
      return text.replace(
        CREDENTIAL,
        (found, start?: string) =>
          start === undefined || isToken(start) ? this.#transcript.name("token", found) : found,
      );
    }
    const hidden = JSON.stringify(this.#hide(inner));
    return hidden === JSON.stringify(inner) ? text : hidden;
  }
}

function isToken(text: string): boolean {
  return text.split(".").length > 2;
}
