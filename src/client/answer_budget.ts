/**
 * Limits how many elicitation, sampling and roots requests of the server one request of the client can cause, because
 * each of them costs a user's attention, or money for a model.
 */

/** Default maximum number of answers for one request of the client. */
export const MAX_ANSWERS = 32;

/** Counts the server's requests that one request of the client has caused, over all rounds, pages, retries and tasks. */
export interface Asked {
  count: number;
}

/** Decides whether the client answers a request from the server. A hostile server can use up only its own budget. */
export class AnswerBudget {
  /** Maximum number of answers for one request of the client. */
  readonly max: number;
  /**
   * The server's requests since the program's last request, if they arrive while no request of the program is running.
   * Requests from the server during a request that the client sends by itself, such as `initialize` after it has lost its
   * session, count here too.
   */
  readonly outside: Asked = { count: 0 };

  constructor(max: number) {
    this.max = max;
  }

  /** Notes that the program sends a request. The server may then send requests outside of it again. */
  renew(): void {
    this.outside.count = 0;
  }

  /**
   * Counts a request from the server that may belong to any of the running requests. Returns whether the client should
   * answer it. Charges the newest running request first, because a request that runs for hours, such as a long call,
   * would otherwise pay for the requests of short calls.
   */
  chargeAny(running: readonly Asked[]): boolean {
    const asked = running.length ? running.findLast(({ count }) => count < this.max) : this.outside;
    return asked !== undefined && this.charge(asked, 1);
  }

  /** Counts `count` requests from the server, or returns `false` and counts nothing if they exceed the maximum. */
  charge(asked: Asked, count: number): boolean {
    if (asked.count + count > this.max) return false;
    asked.count += count;
    return true;
  }

  explain(): string {
    return `the server asked for more than ${this.max} answers in one request, which is the limit`;
  }
}

/** @throws {RangeError} if the option is not a whole number of at least 0, or `Infinity`. */
export function checkMaxAnswers(max: number): void {
  if (max === Infinity || Number.isSafeInteger(max) && max >= 0) return;
  throw new RangeError(
    `Cannot use maxAnswers: the value is ${max}; use a whole number of at least 0, or Infinity`,
  );
}
