/**
 * Reads bodies piece by piece.
 */

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

/** Returns a body as text. Throws the error that `toError` returns if the body is longer than `maxBytes`. */
export async function readText(
  { body }: Response,
  { maxBytes, toError }: { readonly maxBytes: number; readonly toError: () => Error },
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const piece of readPieces(body)) {
    bytes += piece.byteLength;
    if (bytes > maxBytes) throw toError();
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}
