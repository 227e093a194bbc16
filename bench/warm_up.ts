// Decides when a server is warm. A runtime compiles code again and again while it learns which code is hot, so the CPU time
// per request falls for seconds. A server that is slow per request needs more seconds for as many requests, so a
// warm-up of a fixed time would favour fast servers.

/** One second of load on a server. */
export interface WarmUpStep {
  /** CPU time that the server used, in seconds. */
  readonly cpu: number;
  readonly requests: number;
}

/** Minimum CPU time of a warm-up, in seconds. */
export const WARM_UP_SECONDS = 5;

/** Maximum CPU time of a warm-up, in seconds. */
const MOST_SECONDS = 20;
/** Number of steps without a lower CPU time per request after which a server is warm. */
const STEADY_STEPS = 3;
/** A figure that falls by a smaller part than this counts as steady. */
const NOISE = 0.03;

/**
 * Returns whether a warm-up goes on. It ends when the server has used {@linkcode WARM_UP_SECONDS} of CPU time and its CPU
 * time per request no longer falls. `"falling"`: the warm-up ends, although the CPU time per request still falls.
 */
export function judgeWarmUp(steps: readonly WarmUpStep[]): "cold" | "warm" | "falling" {
  const used = steps.reduce((sum, { cpu }) => sum + cpu, 0);
  const figures = steps.map(({ cpu, requests }) => cpu / requests);
  const earlier = figures.slice(0, -STEADY_STEPS);
  const isSteady = earlier.length > 0 &&
    Math.min(...figures.slice(-STEADY_STEPS)) >= (1 - NOISE) * Math.min(...earlier);
  if (isSteady && used >= WARM_UP_SECONDS) return "warm";
  return used >= MOST_SECONDS ? "falling" : "cold";
}
