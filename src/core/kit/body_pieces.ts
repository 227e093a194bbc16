/**
 * Iterates over the pieces of a body.
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
