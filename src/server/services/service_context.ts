/**
 * The context of a handler with services.
 */
import type { Context } from "../call/context.ts";
import { CALL, HAS_SCOPES } from "../../core/internals.ts";
import type { Service } from "../call/service.ts";
import type { Scope } from "./service_scope.ts";

export interface ServiceSource {
  readonly container: { get(scope: Scope, service: Service): Promise<unknown> };
  readonly scope: Scope;
}

/** The call provides all other members. */
export class ServiceContext<S> implements Context<S> {
  readonly services: S;
  readonly #call: Context;
  readonly #source: ServiceSource;

  /** `services` are the values for `ctx.services`. `source` provides further services for `ctx.get`. */
  constructor(call: Context, services: S, source: ServiceSource) {
    this.#call = call;
    this.services = services;
    this.#source = source;
  }

  get get(): Context["get"] {
    const { container, scope } = this.#source;
    // The cast is safe, because `service` created the value.
    return async <T>(service: Service<T>) => await container.get(scope, service) as T;
  }

  get client(): Context["client"] {
    return this.#call.client;
  }

  get principal(): Context["principal"] {
    return this.#call.principal;
  }

  get [CALL](): Context {
    return this.#call;
  }

  get [HAS_SCOPES](): unknown {
    return Reflect.get(this.#call, HAS_SCOPES);
  }

  get session(): Context["session"] {
    return this.#call.session;
  }

  get pathParams(): Context["pathParams"] {
    return this.#call.pathParams;
  }

  get server(): Context["server"] {
    return this.#call.server;
  }

  get method(): Context["method"] {
    return this.#call.method;
  }

  get params(): Context["params"] {
    return this.#call.params;
  }

  get meta(): Context["meta"] {
    return this.#call.meta;
  }

  get http(): Context["http"] {
    return this.#call.http;
  }

  get idempotencyToken(): Context["idempotencyToken"] {
    return this.#call.idempotencyToken;
  }

  get signal(): Context["signal"] {
    return this.#call.signal;
  }

  get progress(): Context["progress"] {
    return this.#call.progress;
  }

  get log(): Context["log"] {
    return this.#call.log;
  }

  get elicit(): Context["elicit"] {
    return this.#call.elicit;
  }

  get elicitUrl(): Context["elicitUrl"] {
    return this.#call.elicitUrl;
  }

  get sample(): Context["sample"] {
    return this.#call.sample;
  }

  get roots(): Context["roots"] {
    return this.#call.roots;
  }

  get forward(): Context["forward"] {
    return this.#call.forward;
  }

  get once(): Context["once"] {
    return this.#call.once;
  }

  get callTool(): Context["callTool"] {
    return this.#call.callTool;
  }

  get getPrompt(): Context["getPrompt"] {
    return this.#call.getPrompt;
  }

  get readResource(): Context["readResource"] {
    return this.#call.readResource;
  }

  get list(): Context["list"] {
    return this.#call.list;
  }

  get complete(): Context["complete"] {
    return this.#call.complete;
  }

  get outer(): Context["outer"] {
    return this.#call.outer;
  }

  get defer(): Context["defer"] {
    return this.#call.defer;
  }

  get closeStream(): Context["closeStream"] {
    return this.#call.closeStream;
  }
}
