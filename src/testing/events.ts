/**
 * Reads a stream of server-sent events.
 *
 * @module
 */

/** One event; without `data` it only says where the stream is. */
export interface StreamEvent {
  readonly data?: string;
  readonly id?: string;
  /** Milliseconds. */
  readonly retry?: number;
}

/** The events of a response, until it ends; aborting `signal` closes it and throws the reason. */
export async function* readEvents(response: Response, signal?: AbortSignal): AsyncGenerator<StreamEvent> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const stop = () => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", stop);
  const decoder = new TextDecoder();
  let rest = "";
  let fields: string[] = [];
  try {
    while (true) {
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return;
      const lines = (rest + decoder.decode(value, { stream: true })).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line) fields.push(line);
        else {
          if (fields.some((field) => !field.startsWith(":"))) yield toEvent(fields);
          fields = [];
        }
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
  return {
    data: values.get("data") || undefined,
    id: values.get("id"),
    retry: retry === undefined ? undefined : Number(retry),
  };
}
