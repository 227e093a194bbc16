/**
 * Middleware: functions that wrap calls.
 */
import { toHandled } from "../../core/protocol/promises.ts";
import type { Result } from "../../core/protocol/jsonrpc.ts";
import type { Call } from "./call.ts";
import type { Context } from "./context.ts";
import { INTERNALS } from "../../core/internals.ts";
import { lazyWireCheck } from "./lazy_wire_check.ts";

/**
 * Wraps a call. Calls `next` to run the handler, and returns the handler's result or another result, or throws. After a
 * timeout or a cancellation, `next` rejects with the reason of `call.signal`, even if the handler is still running. The
 * returned result is checked like the result of a handler: a member of a wrong type fails the call, and is left out of a
 * list.
 *
 * ```ts
 * import type { Middleware } from "@x/mcp";
 *
 * const timing: Middleware = async (call, next) => {
 *   const start = performance.now();
 *   const result = await next();
 *   console.error(call.method, performance.now() - start);
 *   return result;
 * };
 * ```
 */
export type Middleware = (call: Context, next: () => Promise<Result>) => Promise<Result>;

/** The symbol is global, because middleware may come from another copy of the library. */
const METHODS: unique symbol = Symbol.for("mcp.methods");

/**
 * Runs middleware only for the given methods. Shared caches can store the server's lists only if no middleware runs for
 * list requests.
 *
 * ```ts
 * import { createServer, type Middleware, onlyMethods, tool } from "@x/mcp";
 *
 * const audit: Middleware = async (call, next) => {
 *   console.error(call.principal?.id, call.params.name);
 *   return await next();
 * };
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * export default createServer({ name: "s", version: "1.0.0", handlers: [hello], use: [onlyMethods(["tools/call"], audit)] });
 * ```
 *
 * @throws {TypeError} if `methods` is not a list of method names, or `middleware` is not a function.
 */
export function onlyMethods(methods: readonly string[], middleware: Middleware): Middleware {
  const refuse = (state: string) => new TypeError(`Cannot limit middleware to methods: ${state}`);
  if (!Array.isArray(methods) || !methods.every((method) => typeof method === "string")) {
    throw refuse('the methods are not a list of strings; use a list such as ["tools/call"]');
  }
  if (!methods.length) {
    throw refuse("the list is empty, so the middleware would never run; name a method, or omit the middleware");
  }
  if (typeof middleware !== "function") throw refuse("the middleware is not a function");
  if (INTERNALS in middleware) throw refuse("it is a layer; return methods with the steps of the layer");
  const known = listMethods();
  for (const method of methods) {
    if (known.includes(method)) continue;
    // Throw for a misspelled method. Otherwise the middleware would not run for the intended method, and the server
    // would skip the middleware's checks.
    const meant = known.find((each) => toLetters(each) === toLetters(method));
    if (meant === undefined && /^[\w.$-]+(\/[\w.$-]+)+$/.test(method)) continue;
    const remedy = meant === undefined ? "use names such as tools/call" : `did you mean ${meant}?`;
    throw refuse(`${JSON.stringify(method)} is not a method; ${remedy}`);
  }
  const limited: Middleware = async (call, next) =>
    methods.includes(call.method) ? await middleware(call, next) : await next();
  return Object.assign(withName(limited, middleware.name), { [METHODS]: methods });
}

/** Gives a function of a layer the name of the layer, which lists of steps and errors show. */
export function withName<F extends (...given: never[]) => unknown>(run: F, name: string): F {
  return Object.defineProperty(run, "name", { value: name });
}

/**
 * Runs middleware only for the given methods of the protocol, and for the methods and notifications of all extensions.
 *
 * @internal
 */
export function onlyMethodsAndExtensions(methods: readonly string[], middleware: Middleware): Middleware {
  const others = listMethods().filter((method) => !methods.includes(method));
  const limited: Middleware = async (call, next) =>
    others.includes(call.method) ? await next() : await middleware(call, next);
  return Object.assign(withName(limited, middleware.name), { [METHODS]: methods });
}

/** The list is in a function, so that bundlers can remove the list if `onlyMethods` is not used. */
function listMethods(): readonly string[] {
  return [
    ...["initialize", "ping", "server/discover", "subscriptions/listen", "tools/list", "tools/call", "resources/list"],
    ...["resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "prompts/list"],
    ...["prompts/get", "completion/complete", "logging/setLevel"],
  ];
}

/** Reduces a name to a form that common misspellings have too: lower-case letters without `s`. */
function toLetters(name: string): string {
  return name.toLowerCase().replace(/[^a-z]|s/g, "");
}

export function runsFor(
  middleware: Middleware & { readonly [METHODS]?: readonly string[] },
  method: string,
): boolean {
  return middleware[METHODS]?.includes(method) ?? true;
}

/** Tests whether middleware runs for list requests, and therefore may change a list's contents. */
export function seesLists(middleware: Middleware & { readonly [METHODS]?: readonly string[] }): boolean {
  return middleware[METHODS]?.some((method) => method.endsWith("/list")) ?? true;
}

/** The first middleware is the outermost. Checks the result, because a middleware can return a result of its own. */
export function compose<A extends readonly unknown[]>(
  middleware: readonly Middleware[],
  last: (call: Call, ...rest: A) => Result | Promise<Result>,
): (call: Call, ...rest: A) => Result | Promise<Result> {
  if (!middleware.length) return last;
  const run = middleware.reduceRight<(call: Call, ...rest: A) => Result | Promise<Result>>(
    (next, use) => (call, ...rest) =>
      use(call, () => {
        try {
          const result = next(call, ...rest);
          if (!(result instanceof Promise)) return Promise.resolve(result);
          call.passed?.push(result);
          // Reject when the call is cancelled, so that middleware does not wait for a handler that ignores
          // `ctx.signal`.
          return toHandled(call.untilCancelled(result));
        } catch (error) {
          return toHandled(Promise.reject(error));
        }
      }),
    last,
  );
  return (call, ...rest) => check(call, () => run(call, ...rest));
}

async function check(call: Call, run: () => Result | Promise<Result>): Promise<Result> {
  let result;
  try {
    result = await run();
  } catch (error) {
    throw error instanceof TypeError ? (await lazyWireCheck.load()).explainFrozen(call, error) : error;
  }
  const { checkMiddleware } = lazyWireCheck.loaded ?? await lazyWireCheck.load();
  return checkMiddleware(call, result);
}
