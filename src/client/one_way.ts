/**
 * Posts messages that expect no reply over HTTP: notifications, and responses to requests of the server. A server can
 * cause such messages without end, for example with pings. So they must not hold connections, fill the memory, or
 * involve the user.
 */
import { Slots } from "./slots.ts";
import { withTimeLimit } from "./deadline.ts";
import type { Message } from "./message.ts";
import { isStream, readStart } from "./response_text.ts";

/**
 * Milliseconds within which the server must accept a message that expects no reply, including the time for which the
 * message waits for earlier messages. A server that never responds fills this time. Servers usually respond before they
 * process the message.
 */
const ACCEPT_MS = 10_000;
/**
 * Maximum number of open HTTP requests per connection that contain messages without a reply. Further messages wait. A
 * server fills the places by sending pings, and by not responding to the answers. The maximum is far below 256, because
 * Bun sends at most 256 HTTP requests at the same time, to all servers together.
 */
const MAX_OPEN = 16;

export function isOneWay({ method, id }: Message): boolean {
  return method === undefined || id === undefined;
}

/** A response that is not a reply. */
export interface Acceptance {
  readonly response: Response;
  /** The start of the body. Empty for an event stream. */
  readonly text: string;
}

export class OneWayPosts {
  readonly #slots = new Slots(MAX_OPEN);

  /**
   * Posts a message with `post`, whose signal aborts when the message takes too long.
   *
   * @throws {DOMException} named `TimeoutError` if the server does not respond in time, or the reason of `signal`.
   */
  async send(post: (signal: AbortSignal) => Promise<Response>, signal: AbortSignal): Promise<Acceptance> {
    const state =
      `Cannot send the message: the server did not accept it within ${ACCEPT_MS} ms; check that the server responds to notifications`;
    return await withTimeLimit(
      { ms: ACCEPT_MS, signal, state },
      async (either) => await this.#slots.run(async () => await readAcceptance(await post(either), either), either),
    );
  }
}

/** Reads the response to a message whose reply does not arrive in this response. */
export async function readAcceptance(response: Response, signal: AbortSignal): Promise<Acceptance> {
  if (!isStream(response)) return { response, text: await readStart(response, signal) };
  // Never read a stream, because the server could send messages on it, or make the client resume it, without end.
  response.body?.cancel().catch(() => {});
  return { response, text: "" };
}
