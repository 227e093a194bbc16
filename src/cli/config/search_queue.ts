/**
 * Runs one search of each client at a time, because a short query can keep the disk busy for seconds.
 *
 * @module
 */
import { ToolError } from "../../library.ts";

/** The number of searches of one client that may wait for the running one. */
const MAX_WAITING = 8;

/** Queues searches by client. */
export class SearchQueue {
  readonly #clients = new Map<unknown, { last: Promise<unknown>; count: number }>();

  /**
   * Runs a search after the earlier ones of the same client.
   *
   * @throws {ToolError} if too many searches of the client are waiting.
   */
  async run<T>(client: unknown, search: () => Promise<T>): Promise<T> {
    const queue = this.#clients.get(client) ?? { last: Promise.resolve(), count: 0 };
    if (queue.count > MAX_WAITING) {
      throw new ToolError("Cannot search: too many searches are waiting; try again later");
    }
    this.#clients.set(client, queue);
    queue.count++;
    const result = queue.last.then(search).finally(() => {
      if (!--queue.count) this.#clients.delete(client);
    });
    queue.last = result.catch(() => {});
    return await result;
  }
}
