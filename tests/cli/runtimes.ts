// How the tests start the CLI on each runtime.
export { allRuntimes, runtimes } from "../support/runtimes.ts";
