/**
 * Binds services to handlers. Each run of a handler gets a context with the values of the handler's services.
 */
import {
  type Binding,
  type ContainerHost,
  type Definition,
  findRoot,
  type Injectable,
  type Injected,
  type ServiceCall,
  toDefinition,
} from "../call/container.ts";
import type { Service, Services } from "../call/service.ts";
import { LazyContainer } from "./lazy_container.ts";
import type { Needs } from "./service_container.ts";

export function bind(services: Services): Binding {
  const toNeeds = (list: Needs["list"]): Needs => ({
    list,
    isLasting: list.every(([, service]) => toDefinition(service).lifetime === "server"),
  });
  const all = toNeeds(Object.entries(services));
  const shared = toNeeds(all.list.filter(([, service]) => toDefinition(service).lifetime !== "call"));
  const mayUndo = ({ lifetime, dispose }: Definition) => lifetime !== "server" && !!dispose;
  return {
    undoes: all.list.some(([, service]) => mayUndo(toDefinition(service))),
    open: (host) => openContainer(host).add(all.list.map(([, service]) => service)),
    inject: (run) => inject(run, all, false),
    share: (run) => inject(run, shared, true),
  };
}

function inject<C extends ServiceCall, A extends readonly unknown[], R>(
  run: Injectable<C, A, R>,
  needs: Needs,
  isShared: boolean,
): Injected<C, A, R> {
  const injection = { run, needs, isShared };
  return (call, _, ...rest) => {
    const { host } = call;
    // Only the fake context of a test has no `parts`. The fake context already contains the services.
    return host.parts ? openContainer(host).run(call, injection, rest) : run(call, call, ...rest);
  };
}

export async function getService(call: ServiceCall, service: Service): Promise<unknown> {
  return await openContainer(call.host).get(call, service);
}

function openContainer(host: ContainerHost): LazyContainer {
  const root = findRoot(host);
  const { parts } = root;
  if (!parts) {
    throw new TypeError(
      "Cannot get a service: the context is a fake; pass the service's value in the services option of fakeContext",
    );
  }
  // The cast is safe, because only this function creates containers. Another copy of the library may have created the
  // container.
  return (root.container ??= new LazyContainer(parts, root)) as LazyContainer;
}
