/**
 * Every bound of the library, in one place.
 *
 * @module
 */

/** How much a server gives to its clients. Whoever wants no bound writes `Infinity`; times are milliseconds. */
export interface Limits {
  /** Bytes of one request body; more is answered with 413. */
  readonly bodyBytes: number;
  /**
   * Bytes of all bodies over 64 KiB on their way in the process: clients that send them slowly must not fill the memory
   * together. When there are more, the oldest is answered with 503.
   */
  readonly bodiesBytes: number;
  /** Time for a body to arrive; neither runtime closes a client that stops in the middle. Answered with 408. */
  readonly bodyMs: number;
  /** Levels of nested objects and arrays in a message; code that walks a value deeper would exhaust the stack. */
  readonly jsonDepth: number;
  /**
   * Values in a message, nested ones included. Each takes up to 20 times the memory of its text, and time in every check.
   */
  readonly jsonValues: number;
  /** Characters of a request id; it is kept while the call runs and copied into every answer. */
  readonly idLength: number;
  /** Characters of a method name. */
  readonly methodLength: number;
  /** Messages in one batch. */
  readonly batch: number;
  /** Bytes of one line on a byte stream; a longer one is skipped up to its end. */
  readonly lineBytes: number;
  /** Calls running at once in the process, each with its arguments in memory; the next ones wait in the queue. */
  readonly calls: number;
  /** Calls running at once for one client (a session or a pipe); a client must not take every slot. */
  readonly callsPerClient: number;
  /** Calls waiting for a slot; more are refused with 503. */
  readonly queue: number;
  /** Longest run of one handler; `Infinity` is off. 120,000 suits most servers. */
  readonly callMs: number;
  /** Longest wait for the client's answer to a question. */
  readonly askMs: number;
  /** How often one call may come back with answers to questions. */
  readonly rounds: number;
  /** Characters of the state that travels with a question, and of one answer in it. */
  readonly stateBytes: number;
  /** How long the state of a question is good for. */
  readonly stateMs: number;
  /** Characters of one result as JSON. */
  readonly resultBytes: number;
  /** Silence after which a call's answer becomes a stream (at most twice this), so that a lost client is noticed. */
  readonly graceMs: number;
  /** Pause between two comments on a silent stream; one runtime cuts a stream after ten silent seconds. */
  readonly heartbeatMs: number;
  /** Frames waiting on one stream before its producer has to wait. */
  readonly streamFrames: number;
  /** Characters waiting on one stream before its producer has to wait; a runtime holds some sixteen times as much. */
  readonly streamBytes: number;
  /** How long a stream may stand with a full queue before it is closed and its call is cancelled. */
  readonly writeMs: number;
  /** Streams, sockets and subscriptions that are open in the process. */
  readonly streams: number;
  /** The same for one client. */
  readonly streamsPerClient: number;
  /**
   * Bytes that one client makes the server hold: parameters of running and waiting calls, large bodies, answers that
   * were not read yet, sessions, and what they watch.
   */
  readonly clientBytes: number;
  /** The same for all clients together. */
  readonly totalBytes: number;
  /** Resources one client may watch; their URIs may have 256 characters on average. */
  readonly subscriptions: number;
  /** Sessions whose state is kept; the one idle for longest makes room, and if none is idle the next gets a 503. */
  readonly sessions: number;
  /** The same for one principal, who must not take the room of all; callers without one are not told apart. */
  readonly sessionsPerClient: number;
  /** Silence after which a session ends. */
  readonly sessionIdleMs: number;
  /** Longest life of a session. */
  readonly sessionMs: number;
  /** Events of one session that can be read again. */
  readonly replayEvents: number;
  /** Characters of all events in the process that can be read again; one session holds at most as much as is free. */
  readonly replayBytes: number;
  /** How long an event can be read again. */
  readonly replayMs: number;
  /** Items on one page of a list. */
  readonly page: number;
  /** Time that running calls get when the server closes. */
  readonly closeMs: number;
}

/** What holds when nothing is said. */
export const LIMITS: Limits = {
  bodyBytes: 4 * 1024 * 1024,
  bodiesBytes: 32 * 1024 * 1024,
  bodyMs: 30_000,
  jsonDepth: 128,
  jsonValues: 200_000,
  idLength: 256,
  methodLength: 256,
  batch: 100,
  lineBytes: 8 * 1024 * 1024,
  calls: 4096,
  callsPerClient: 256,
  queue: 4096,
  callMs: Infinity,
  askMs: 60_000,
  rounds: 16,
  stateBytes: 65_536,
  stateMs: 600_000,
  resultBytes: 32 * 1024 * 1024,
  graceMs: 25,
  heartbeatMs: 8000,
  streamFrames: 256,
  streamBytes: 8192,
  writeMs: 30_000,
  streams: 1024,
  streamsPerClient: 256,
  clientBytes: 64 * 1024 * 1024,
  totalBytes: 256 * 1024 * 1024,
  subscriptions: 1000,
  sessions: 10_000,
  sessionsPerClient: 100,
  sessionIdleMs: 1_800_000,
  sessionMs: 86_400_000,
  replayEvents: 1000,
  replayBytes: 8 * 1024 * 1024,
  replayMs: 300_000,
  page: 250,
  closeMs: 5000,
};

/** The defaults with what the user changed. A number that is no bound, or a name that is no limit, is refused. */
export function readLimits(changes: Partial<Limits> = {}): Limits {
  for (const [name, value] of Object.entries(changes)) {
    if (!Object.hasOwn(LIMITS, name)) throw new TypeError(`Cannot set limits.${name}: there is no such limit`);
    if (!(Number(value) > 0)) {
      throw new TypeError(
        `Cannot set limits.${name} to ${value}: it must be a number above 0, or Infinity for no bound`,
      );
    }
  }
  return { ...LIMITS, ...changes };
}

/** Whether one client may watch all these resources. */
export function isWatchable(uris: readonly string[], { subscriptions }: Limits): boolean {
  return uris.length <= subscriptions && uris.join("").length <= subscriptions * 256;
}
