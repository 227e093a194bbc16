/** Returns a function that throws an error, such as a handler that always fails. */
export function throwing(error: unknown): () => never {
  return () => {
    throw error;
  };
}
