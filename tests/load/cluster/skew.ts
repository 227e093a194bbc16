// Sets the clock of this process ahead by `SKEW_MS` milliseconds.
import process from "node:process";

const skewMs = Number(process.env.SKEW_MS ?? 0);
if (skewMs) {
  const { now } = Date;
  Date.now = () => now() + skewMs;
}
