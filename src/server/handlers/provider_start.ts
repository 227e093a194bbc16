/**
 * Starts providers with their servers, and passes the handle of the server to the functions of a provider.
 */
import type { Context } from "../call/context.ts";
import { toCall } from "../call/find_call.ts";
import type { Life } from "../engine/extension.ts";
import type { ServerHandle, StartPart } from "../engine/server_handle.ts";
import { createLife } from "./watcher.ts";

export interface StartedProvider {
  /** The `life` of the provider's handler. A server starts and stops it with the handler. */
  readonly life: Life;
  /**
   * Returns a function that waits until the provider has started, and then calls `run` with the handle of the server as
   * the last argument. Throws if the call ends before.
   */
  bind<First, C extends Context<never>, R>(
    run: (first: First, ctx: C, server: ServerHandle | undefined) => R | Promise<R>,
  ): (first: First, ctx: C) => R | Promise<R>;
}

/**
 * `name` is the kind and name of the provider, such as `resource provider "repo:"`, and is unique in a server. `owner` is
 * the key of a resource provider without a scheme.
 */
export function startProvider(name: string, start: StartPart, owner?: string): StartedProvider {
  return {
    life: createLife({ id: name, name, start, owner, keys: new Map() }),
    bind: (run) => (first, ctx) => {
      const call = toCall(ctx, "use a provider");
      const { lives } = call.host;
      // The cast is safe, because `extension_lives.ts` created the handle.
      const runStarted = () => run(first, ctx, lives?.find(name) as ServerHandle | undefined);
      const starting = lives?.until(name);
      if (!starting) return runStarted();
      return (async () => {
        await starting;
        if (call.ended) throw call.endError;
        return await runStarted();
      })();
    },
  };
}
