/**
 * A container that loads the code for creating services on first use, so that the startup of a server without services
 * is not delayed.
 */
import { LazyModule } from "../../core/protocol/lazy_module.ts";
import type { Container, ContainerHost, ContainerParts, ServiceCall } from "../call/container.ts";
import type { Service } from "../call/service.ts";
import type { Injection, ServiceContainer } from "./service_container.ts";

export class LazyContainer implements Container {
  readonly #parts: ContainerParts;
  readonly #host: ContainerHost;
  /** Services that were added before the container code was loaded. */
  // Bound: one per service.
  readonly #added: Service[] = [];
  readonly #module: LazyModule<ServiceContainer> = new LazyModule(() => this.#open());
  /** Whether the container code was loaded or is being loaded. */
  #isUsed = false;
  #isClosing = false;

  constructor(parts: ContainerParts, host: ContainerHost) {
    this.#parts = parts;
    this.#host = host;
  }

  /** `ready` creates the services that live as long as the server. */
  add(services: readonly Service[]): void {
    const { loaded } = this.#module;
    if (loaded) loaded.add(services);
    else this.#added.push(...services);
  }

  async ready(): Promise<void> {
    await (await this.#module.load()).ready();
  }

  start(): void {
    const { loaded } = this.#module;
    if (loaded) loaded.start();
    // Ignore a loading error, because the next call that needs a service reports the error.
    else this.#module.load().then((container) => container.start(), () => {});
  }

  async disposeUnlessStarted(): Promise<void> {
    if (this.#isUsed) await (await this.#module.load()).disposeUnlessStarted();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#isUsed) await (await this.#module.load()).close();
  }

  /** Runs a function with its services. {@linkcode ServiceContainer.run} describes the fast path. */
  run<C extends ServiceCall, A extends readonly unknown[], R>(
    call: C,
    injection: Injection<C, A, R>,
    rest: A,
  ): R | Promise<Awaited<R>> {
    const container = this.#module.loaded;
    return container ? container.run(call, injection, rest) : this.#runLater(call, injection, rest);
  }

  async #runLater<C extends ServiceCall, A extends readonly unknown[], R>(
    call: C,
    injection: Injection<C, A, R>,
    rest: A,
  ): Promise<Awaited<R>> {
    return await (await this.#module.load()).run(call, injection, rest);
  }

  async get(call: ServiceCall, service: Service): Promise<unknown> {
    return await (await this.#module.load()).getForCall(call, service);
  }

  async #open(): Promise<ServiceContainer> {
    this.#isUsed = true;
    const { ServiceContainer } = await import("./service_container.ts");
    const container = new ServiceContainer(this.#parts, this.#host);
    container.add(this.#added.splice(0));
    if (this.#isClosing) await container.close();
    return container;
  }
}
