/**
 * Ids of events: the name of a stream, and the number of an event in it.
 *
 * @see specification/2025-11-25/basic/transports (Resumability and Redelivery)
 * @module
 */

/** An event in a stream. */
export interface EventPlace {
  /** Name of the stream. It tells streams of one session apart. */
  readonly name: string;
  /** Number of the event. The first has 1, and 0 is the place before it. */
  readonly place: number;
}

/** Number of characters in the name of a stream: the start of a UUID. */
export const STREAM_NAME_LENGTH = 13;

/** Returns the id of an event. */
export function toEventId(name: string, place: number): string {
  return `${name}_${place}`;
}

/** Reads the id of an event. Returns `undefined` for a text that is none. */
export function readEventId(id: string): EventPlace | undefined {
  const [, name, digits] = EVENT_ID.exec(id) ?? [];
  return name === undefined ? undefined : { name, place: Number(digits) };
}

const EVENT_ID = new RegExp(`^([0-9a-f-]{${STREAM_NAME_LENGTH}})_(\\d{1,15})$`);
