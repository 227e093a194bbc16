// How the tests start the CLI on each runtime.
export { runtimes } from "../support/runtimes.ts";
