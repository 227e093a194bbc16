// Sets the process's clock ahead by the milliseconds in `SKEW_MS`.
import process from "node:process";

const skewMs = Number(process.env.SKEW_MS ?? 0);
if (skewMs) {
  const { now } = Date;
  Date.now = () => now() + skewMs;
}
