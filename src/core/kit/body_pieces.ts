/**
 * Reads bodies piece by piece.
 */
import { deadline, type DeadlineOptions } from "./deadline.ts";

/**
 * Yields the pieces of a body, and cancels the body if the loop ends early. Use it instead of iterating over the stream,
 * because streams are not iterable in Safari.
 */
export async function* readPieces<T>(body: ReadableStream<T> | null): AsyncGenerator<T> {
  const reader = body?.getReader();
  if (!reader) return;
  let isDone = false;
  try {
    while (true) {
      const next = await reader.read();
      isDone = next.done;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    if (!isDone) reader.cancel().catch(() => {});
  }
}

export interface TextResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export type TextLimits = DeadlineOptions<never> & { readonly maxBytes: number; readonly toError: () => Error };

/**
 * Waits for a response, and reads its body as text. Throws the error that `toError` returns if the body is longer than
 * `maxBytes`. Stops waiting at the deadline, because a custom `fetch` may ignore its signal, and other requests may wait
 * for the response.
 */
export async function readText(sending: Promise<Response>, limits: TextLimits): Promise<TextResponse> {
  const read = async () => {
    const { status, headers, body } = await sending;
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    for await (const piece of readPieces(body)) {
      bytes += piece.byteLength;
      if (bytes > limits.maxBytes) throw limits.toError();
      text += decoder.decode(piece, { stream: true });
    }
    return { status, headers, text: text + decoder.decode() };
  };
  return await deadline(read(), limits);
}
