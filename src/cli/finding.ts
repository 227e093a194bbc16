/**
 * What `check`, `doctor` and `pack` report about a server's lists.
 */

/** An error prevents some clients from using the item, or makes a directory refuse it. A warning makes it harder to use. */
export interface Finding {
  readonly level: "error" | "warning";
  /** The item, such as `tool add`. */
  readonly place: string;
  readonly state: string;
  /** Number of the rule in docs/reference/directories.md, such as `D01`. Missing if no directory has such a rule. */
  readonly rule?: string;
  /** The remedy. Missing if the problem suggests none, or if `state` is an error message with a remedy. */
  readonly fix?: string;
}

/** A finding whose item is known from the context. */
export type Problem = Omit<Finding, "place">;

export function toSentence({ state, fix }: Problem): string {
  return fix === undefined ? state : `${state}; ${fix}`;
}
