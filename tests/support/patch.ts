/** Replaces members of an object, such as a global function, until the end of the block that declares the result. */
export function patch<T extends object>(object: T, members: Readonly<Partial<T>>): Disposable;
/** Replaces members with values of another type. */
export function patch(object: object, members: Readonly<Record<string, unknown>>): Disposable;
export function patch(object: object, members: object): Disposable {
  const before = Object.keys(members).map((name) => [name, Reflect.get(object, name)] as const);
  Object.assign(object, members);
  return { [Symbol.dispose]: () => void Object.assign(object, Object.fromEntries(before)) };
}
