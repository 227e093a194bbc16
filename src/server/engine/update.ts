/**
 * The loop that changes a value in a store, although other processes may change the same value at the same time.
 */

/** The result of an attempt whose write failed, because another process has changed the value first. */
export const CHANGED: unique symbol = Symbol("changed");

/** Maximum number of attempts. An attempt fails only if another process has succeeded. */
const ATTEMPTS = 40;

/**
 * Changes a stored value. Each attempt reads the value, and writes it with the version that was read. If another process
 * has changed the value in between, the attempt returns `CHANGED`, and is repeated. Resolves to the result of the attempt
 * that succeeded.
 *
 * @param purpose What fails if all attempts fail, such as `change the session`.
 */
export async function update<T>(purpose: string, attempt: () => Promise<T | typeof CHANGED>): Promise<T> {
  for (let left = ATTEMPTS; left; left--) {
    const result = await attempt();
    if (result !== CHANGED) return result;
  }
  throw new Error(`Cannot ${purpose}: in all ${ATTEMPTS} attempts, another instance changed the stored value first`);
}
