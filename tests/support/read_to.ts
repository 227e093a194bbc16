// Reads a part of a stream.

/** Reads a body until it contains a text, and then cancels it. Returns what was read. */
export async function readTo(body: ReadableStream<Uint8Array> | null, text: string): Promise<string> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let read = "";
  while (!read.includes(text)) {
    const { value, done } = await reader?.read() ?? { done: true };
    if (done) return read;
    read += value;
  }
  await reader?.cancel();
  return read;
}
