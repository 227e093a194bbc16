/**
 * Warns of values that another process has sealed with another secret.
 */
import type { Implementation } from "../../core/protocol/types.ts";
import type { Sealer } from "./sealer.ts";

interface Warning {
  readonly identity: Implementation;
  readonly sealer: Sealer;
}

/** Minimum length of the sealed values that clients keep, in characters. */
const MIN_SEALED = 64;

/**
 * Warns about a likely mistake: several processes that serve one address reject each other's values, unless they share a
 * secret. `thing` is what a client has sent, such as `a session id`.
 *
 * Warns only once and only about long texts, because a client can also make up a text.
 */
export function warnOfForeign({ identity, sealer }: Warning, thing: string, text: string): void {
  if (sealer.hasWarned || text.length < MIN_SEALED) return;
  sealer.hasWarned = true;
  const others = sealer.isShared ? "" : ", or if the server was restarted";
  console.warn(
    `Cannot open ${thing} that a client has sent to ${identity.name}: this process, or a process with the same secret, ` +
      `has not created it; if several processes serve this address${others}, set the same secret, name and path in all ` +
      "processes",
  );
}
