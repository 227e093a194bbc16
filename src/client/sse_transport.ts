/**
 * The HTTP transport of revision 2024-11-05: an event stream from the server, and a URL to which the client posts
 * messages.
 *
 * @see specification/2024-11-05/basic/transports (HTTP with SSE)
 */
import { deadline } from "../core/kit/deadline.ts";
import { readEvents, readMessageEvent, type StreamEvent } from "../core/kit/event_stream.ts";
import { quote } from "../core/protocol/errors.ts";
import { type HttpChannelOptions, toStreamError } from "./http_channel.ts";
import type { OpenLineTransport, WriteOptions } from "./line_channel.ts";
import { type Acceptance, OneWayPosts, readAcceptance } from "./one_way.ts";
import { isStream } from "./response_text.ts";
import { toShown } from "./shown.ts";
import { isBelow } from "./url_scope.ts";

export interface SseTransportOptions extends Pick<HttpChannelOptions, "url" | "sender" | "headers"> {
  readonly signal: AbortSignal;
}

/**
 * Opens the stream, and waits for the event that contains the URL for messages. Returns `undefined` if the response is
 * not an event stream.
 *
 * @throws {Error} if the stream contains no URL, or a URL that may belong to another party.
 */
export async function sseTransport(
  { url, sender, headers, signal }: SseTransportOptions,
): Promise<OpenLineTransport | undefined> {
  const stop = new AbortController();
  const isGivenUp = () => stop.abort(signal.reason);
  signal.addEventListener("abort", isGivenUp);
  const accept = { accept: "text/event-stream", ...headers };
  const response = await sender.send({ url, headers: accept, signal: stop.signal });
  if (!isStream(response)) return void await response.body?.cancel();
  const events = readEvents(response, stop.signal);
  let address: URL;
  try {
    // The URL for messages is relative to `response.url`, the URL after redirects. `response.url` is empty if the server
    // runs in this process.
    address = toAddress(await readAddress(events), response.url || url, url);
  } catch (error) {
    // Otherwise the server could hold the connection.
    stop.abort();
    throw error;
  } finally {
    signal.removeEventListener("abort", isGivenUp);
  }

  return (receive, end) => {
    const reading = read();
    const posts = new OneWayPosts();

    async function read(): Promise<void> {
      try {
        for (let next = await events.next(); !next.done; next = await events.next()) {
          const data = readMessageEvent(next.value);
          if (data !== undefined) await receive(data);
        }
      } catch {
        // Treat a broken stream like a stream that has ended.
      }
      end("the server closed the stream");
    }

    async function write(body: string, { signal, isOneWay = false }: WriteOptions = {}): Promise<void> {
      const ended = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
      const post = (signal: AbortSignal) => {
        const all = { ...headers, "content-type": "application/json" };
        const sending = { url: address, method: "POST", headers: all, body, signal };
        return deadline(sender.send(sending, { isInteractive: !isOneWay }), { signal });
      };
      // The response to a request arrives on the stream too, so its HTTP response is not a reply either. But some
      // servers do not respond before they have processed the request.
      const { response, text }: Acceptance = isOneWay
        ? await posts.send(post, ended)
        : await readAcceptance(await post(ended), ended);
      if (!response.ok) throw toStreamError(response, text);
    }

    async function close(): Promise<void> {
      stop.abort();
      await reading;
    }

    return { write, close };
  };
}

/**
 * Returns the URL for messages.
 *
 * @throws {Error} if it is not a valid URL, or may belong to another party.
 */
function toAddress(text: string, base: string | URL, url: string | URL): URL {
  const refuse = (state: string) =>
    new Error(`Cannot use the server's URL for messages: ${state}; ask the operator of the server`);
  const address = URL.parse(text, base);
  if (!address) throw refuse(`${quote(toShown(text))} is not a valid URL`);
  const server = new URL(url);
  const folder = toFolder(server);
  if (isBelow(address, folder) || isSibling(address, server)) return address;
  throw refuse(
    `${toShown(address.origin + address.pathname)} is neither below ${folder.href} nor next to the server's URL, so ` +
      "another party could receive headers and messages",
  );
}

/**
 * Returns the folder below which a server can receive messages: the path up to the last slash, such as `/team-a/` for
 * `/team-a/sse`, and `/team-a/` for itself. Other folders of the origin may belong to other parties, which must not
 * receive the user's credentials for this server. So the folder of `/sse` is `/sse/`, not the whole origin.
 */
function toFolder({ origin, pathname: path }: URL): URL {
  const folder = path.slice(0, path.lastIndexOf("/") + 1);
  return new URL(origin + (folder === "/" && path !== "/" ? `${path}/` : folder));
}

/**
 * Tests whether two paths differ only in the last segment, such as `/sse` and `/messages`, as the two paths of a server
 * usually do. A slash at the end of a path is ignored, so `/sse/` and `/messages/` are siblings too.
 */
function isSibling(address: URL, server: URL): boolean {
  const [path, other] = [server, address].map(({ pathname }) => pathname.replace(/\/$/, "").split("/"));
  const parent = new URL(server.origin + [...path.slice(0, -1), ""].join("/"));
  return other.length === path.length && isBelow(server, parent) && isBelow(address, parent);
}

async function readAddress(events: AsyncGenerator<StreamEvent>): Promise<string> {
  for (let next = await events.next(); !next.done; next = await events.next()) {
    const { type, data = "" } = next.value;
    if (type === "endpoint") return data;
  }
  throw new Error("Cannot get the URL for messages: the stream ended before the server sent the URL");
}
