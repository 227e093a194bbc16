/**
 * The code that runs before each program in the interpreter. It defines `tools` and `console`. A program can change
 * everything in the interpreter, also this code, so this code protects nothing.
 */
export const PRELUDE = `
((call, log, end, maxOutput, maxInput, maxCalls) => {
  "use strict";
  const { parse, stringify } = JSON;
  const waiting = new Map();
  let lastId = 0;
  let room = maxOutput;
  const show = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return value.name + ": " + value.message;
    try {
      return stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  };
  const write = (...values) => {
    if (room <= 0) return;
    const text = values.map(show).join(" ");
    log(text.slice(0, room));
    room -= text.length + 1;
    if (room <= 0) log("… (further output is cut)");
  };
  const callTool = (name, input = {}) => new Promise((resolve, reject) => {
    if (typeof input !== "object" || input === null || Array.isArray(input)) {
      throw new TypeError("Cannot call " + name + ": pass one object with the arguments");
    }
    const text = stringify(input);
    if (text.length > maxInput) throw new RangeError("Cannot call " + name + ": the arguments have more than " + maxInput + " characters as JSON");
    if (lastId >= maxCalls) throw new RangeError("Cannot call " + name + ": a program makes at most " + maxCalls + " calls");
    waiting.set(++lastId, { resolve, reject });
    call(lastId, name, text);
  });
  const get = (_target, name) =>
    typeof name === "string" && name !== "then" && name !== "toJSON" ? (input) => callTool(name, input) : undefined;
  const fixed = (value) => ({ value, enumerable: true });
  Object.defineProperties(globalThis, {
    tools: fixed(new Proxy(Object.freeze({}), { get })),
    console: fixed(Object.freeze({ log: write, info: write, warn: write, error: write, debug: write })),
  });
  const describe = (error) => {
    try {
      if (!(error instanceof Error)) return stringify({ message: "threw " + show(error).slice(0, 2000) });
      const { name, message, stack } = error;
      return stringify({ name: String(name).slice(0, 100), message: String(message).slice(0, 4000), stack: String(stack).slice(0, 2000) });
    } catch {
      return stringify({ message: "threw a value that cannot be shown" });
    }
  };
  return {
    count: () => waiting.size,
    answer(id, isError, text) {
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      const value = text === "" ? undefined : parse(text);
      if (!isError) return resolve(value);
      const error = new Error(value.message);
      if (value.code !== undefined) error.code = value.code;
      reject(error);
    },
    async run(program) {
      let text;
      try {
        const value = await program();
        text = stringify(value) ?? "";
        if (text.length > maxOutput) {
          throw new RangeError("the returned value has " + text.length + " characters as JSON; return at most " + maxOutput);
        }
      } catch (error) {
        return end(0, describe(error));
      }
      end(1, text);
    },
  };
})`;
