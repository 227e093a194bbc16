// Starts an app of a framework.
import { until } from "../support/behaviour.ts";
import { type Running, start } from "../support/processes.ts";
import { ENV } from "./projects.ts";

/** Starts an app, and waits until it listens. */
export async function startApp(words: readonly string[], { cwd, port, env }: {
  readonly cwd: string;
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
}): Promise<Running> {
  const running = await start(words, { cwd, env: { ...ENV, HOST: "127.0.0.1", PORT: `${port}`, ...env } });
  let hasEnded = false;
  running.finished.then(() => hasEnded = true);
  const isOpen = () => fetch(`http://127.0.0.1:${port}/`).then((it) => it.text()).then(() => true, () => false);
  try {
    await until(async () => hasEnded || await isOpen(), "the app listens");
  } catch (error) {
    await running[Symbol.asyncDispose]();
    throw error;
  }
  if (hasEnded) throw new Error((await running.finished).stderr);
  return running;
}
