// Plays the script with a framework, and prints what the framework returns, as lines of JSON.
import process from "node:process";

/** The server: `{ url }`, or `{ command, args }`. */
export const server = JSON.parse(process.env.PROBE_SERVER);

/** Accepts every question. */
export const accept = () => ({ action: "accept", content: {} });

/** Accepts every question, for handlers that return a promise. */
export const acceptLater = () => Promise.resolve(accept());

function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/**
 * Calls the tools of the script. `tools` are the names that the framework lists, and `call` calls a tool by its name on
 * the server. `instructions` are the instructions of the server, if the framework provides them.
 */
export async function play({ tools, call, instructions }) {
  print({ tools, instructions });
  for (const { step, tool, args = {} } of JSON.parse(process.env.PROBE_SCRIPT)) {
    try {
      print({ step, value: await call(tool, args) ?? null });
    } catch (error) {
      print({ step, error: error instanceof Error ? error.message : String(error) });
    }
  }
  print({ isDone: true });
}

/** Ends the process, because some frameworks hold connections open. */
export async function end(close = () => {}) {
  // Fixed wait: a framework that does not close its connection does not call back.
  await Promise.race([Promise.resolve().then(close).catch(() => {}), new Promise((done) => setTimeout(done, 3000))]);
  process.exit(0);
}

/** Finds a tool by its name on the server among tools whose names may have a prefix. */
export function find(tools, name, toName = (tool) => tool.name) {
  const tool = tools.find((tool) => toName(tool) === name) ?? tools.find((tool) => toName(tool).endsWith(`_${name}`));
  if (!tool) throw new Error(`the framework does not list ${name}`);
  return tool;
}
