/**
 * Remembers the plan that a call applies.
 */

/** The plan of one call. */
export interface CallPlan {
  /** What the call would change, as JSON. `undefined` if the plan has expired, which only a resumed call can have. */
  readonly changes: unknown;
  /** Whether output guards may remove parts of the plan, which they cannot find in a text. */
  isGuarded?: boolean;
  /** Whether the call continues an earlier call with the plan, such as a task that another instance has begun. */
  isResumed?: boolean;
  /** Whether the tool has started, and has not refused the call, so that the call may have had effects. */
  isSpent: boolean;
}

const plans = new WeakMap<object, CallPlan>();

export function notePlan(call: object, plan: CallPlan): void {
  plans.set(call, plan);
}

/** Returns `undefined` for a call without a plan. */
export function readPlan(call: object): CallPlan | undefined {
  return plans.get(call);
}
