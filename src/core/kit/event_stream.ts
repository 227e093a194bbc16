/**
 * Reads server-sent events.
 *
 * @see specification/2026-07-28/basic/transports/streamable-http (Receiving Messages)
 */
/** Maximum length of an event in characters. Without this limit, an endless event would fill the memory. */
export const MAX_CHARACTERS: number = 64 * 1024 * 1024;
/** Characters that each line counts in addition to its text, because each line is a separate string. */
const LINE_CHARACTERS = 32;
/** Maximum length of an event id in characters, because the client sends the id back in a header. */
const MAX_ID = 4096;
/** Maximum retry delay that a server can set, in milliseconds. */
const MAX_RETRY_MS = 3_600_000;

/** Without `data`, the event only sets the id or the retry delay. */
export interface StreamEvent {
  readonly type?: string;
  readonly data?: string;
  readonly id?: string;
  /** Milliseconds that the client should wait before it reconnects. */
  readonly retry?: number;
}

/**
 * Returns the data of an event that contains a message. Returns `undefined` for an event of another type, such as a
 * `ping` that keeps the connection open, because its data is not a message.
 */
export function readMessageEvent({ type = "", data }: StreamEvent): string | undefined {
  return type === "" || type === "message" ? data : undefined;
}

/** Yields the events of a response. Cancels the response body and throws the reason if `signal` aborts. */
export async function* readEvents(response: Response, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const stop = () => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", stop);
  const decoder = new TextDecoder();
  let rest = "";
  let size = 0;
  // A line can end in CR, LF or CRLF. If a chunk ends between CR and LF, the LF at the start of the next chunk must not
  // count as another line.
  let endsInReturn = false;
  let fields: string[] = [];
  try {
    while (true) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return;
      const decoded = decoder.decode(value, { stream: true });
      if (!decoded) continue;
      const text: string = endsInReturn && decoded.startsWith("\n") ? decoded.slice(1) : decoded;
      endsInReturn = text.endsWith("\r");
      const lines = text.split(/\r\n|\r|\n/);
      lines[0] = rest + lines[0];
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith(":")) continue;
        size += line.length + LINE_CHARACTERS;
        if (line) fields.push(line);
        else {
          if (fields.length) yield toEvent(fields);
          fields = [];
          size = 0;
        }
      }
      if (size + rest.length > MAX_CHARACTERS) {
        throw new RangeError(`Cannot read the stream: an event is longer than ${MAX_CHARACTERS} characters`);
      }
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

function toEvent(lines: readonly string[]): StreamEvent {
  const values = new Map<string, string>();
  for (const line of lines) {
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    const before = name === "data" ? values.get(name) : undefined;
    values.set(name, before === undefined ? value : `${before}\n${value}`);
  }
  const retry = values.get("retry");
  const id = values.get("id");
  return {
    type: values.get("event"),
    data: values.get("data") || undefined,
    id: id === undefined || id.length > MAX_ID ? undefined : id,
    retry: retry !== undefined && /^\d{1,9}$/.test(retry) ? Math.min(Number(retry), MAX_RETRY_MS) : undefined,
  };
}
