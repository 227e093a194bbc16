/**
 * The HTTP endpoint of a server. The first request loads the code of the transport, so that a stdio server never loads
 * this code.
 */
import { LazyModule } from "../../../core/protocol/lazy_module.ts";
import { workers } from "../../../core/runtime.ts";
import type { Core } from "../../engine/core.ts";
import type { Engine, Era } from "../../engine/era.ts";
import type { Caller } from "./caller.ts";
import type { Endpoint, Fetch, HttpOptions } from "./fetch.ts";

export interface HttpEntry {
  readonly core: Core;
  /** The endpoint's path, which can have parameters. */
  readonly path: string;
  readonly endpoint: LazyEndpoint;
  /** Settles when the server has closed. */
  readonly ended: Promise<void>;
}

export class LazyEndpoint {
  readonly options: HttpOptions;
  readonly #engine: Engine;
  readonly #era: Era;
  readonly #module: LazyModule<Endpoint>;
  readonly #fetchLater: Fetch;
  #isClosing = false;

  constructor(engine: Engine, era: Era, options: HttpOptions) {
    this.#engine = engine;
    this.#era = era;
    this.options = options;
    this.#module = new LazyModule(() => this.#load());
    this.#fetchLater = serveBy(engine.core, this.#module);
  }

  /** The endpoint. `undefined` until its code is loaded. */
  get loaded(): Endpoint | undefined {
    return this.#module.loaded;
  }

  load(): Promise<Endpoint> {
    return this.#module.load();
  }

  readonly fetch: Fetch = (request, info) => {
    const { loaded } = this.#module;
    return loaded ? loaded.fetch(request, info) : this.#fetchLater(request, info);
  };

  serve(caller: Caller): Response | Promise<Response> {
    return this.loaded ? this.loaded.serve(caller) : this.load().then((endpoint) => endpoint.serve(caller));
  }

  /** An endpoint whose code loads after this call accepts no requests. */
  close(): void {
    this.#isClosing = true;
    this.loaded?.close();
  }

  async #load(): Promise<Endpoint> {
    const { Endpoint } = await import("./fetch.ts");
    const endpoint = new Endpoint(this.#engine, this.#era, this.options);
    if (this.#isClosing) endpoint.close();
    return endpoint;
  }
}

/** On Workers, passes on `waitUntil` of the third argument. On other platforms, returns `fetch` unchanged. */
export function withContext(fetch: Fetch): Fetch {
  if (!workers) return fetch;
  return (request, info, context) => {
    if (!context) return fetch(request, info);
    const waitUntil = (work: Promise<unknown>) => context.waitUntil(work);
    return fetch(request, Object.create(info ?? null, { waitUntil: { value: waitUntil } }));
  };
}

/** Loads the implementation with the first request. Responds with status 500 if the loading fails. */
export function serveBy(core: Pick<Core, "report">, endpoint: LazyModule<{ readonly fetch: Fetch }>): Fetch {
  return async (request, info) => {
    let loaded;
    try {
      loaded = await endpoint.load();
    } catch (error) {
      core.report(error);
      return new Response(null, { status: 500 });
    }
    return await loaded.fetch(request, info);
  };
}
