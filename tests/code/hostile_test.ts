// Programs that attack: nothing of the host is reachable, limits end them, and other clients are served meanwhile.
import { assert, assertEquals } from "@std/assert";
import { tool } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { behaviour, until } from "../support/behaviour.ts";
import { run, valueOf } from "./programs.ts";

const ping = tool({ name: "ping", annotations: { readOnlyHint: true }, run: () => "pong" });

/** Expressions whose value would be something of the host. */
const ESCAPES = [
  "typeof process",
  "typeof Deno",
  "typeof Bun",
  "typeof require",
  "typeof module",
  "typeof fetch",
  "typeof WebAssembly",
  "typeof Worker",
  "typeof setTimeout",
  "typeof globalThis.constructor.constructor('return typeof process === \"object\" ? process : undefined')()",
  "typeof (() => {}).constructor('return this.process')()",
  "typeof tools.ping.constructor('return this.process')()",
  "typeof console.log.constructor('return this.Deno')()",
  "typeof Function('return this.Bun')()",
  "typeof eval('this.process')",
  "typeof Object.getPrototypeOf(async () => {}).constructor('return process')",
];

behaviour("nothing of the host is reachable", async (connect) => {
  const { client } = await connect({ handlers: [ping, codeMode()] });
  const values = await valueOf(
    client,
    `const out = []; for (const text of ${JSON.stringify(ESCAPES)}) {
      try { out.push(eval(text)) } catch (error) { out.push('undefined') }
    } return out`,
  ) as string[];
  // A constructor makes functions of the interpreter, which see only its globals.
  const allowed = ["undefined", "function"];
  assert(values.every((value) => allowed.includes(value)), values.join());
  assertEquals(values.slice(0, 9), Array(9).fill("undefined"));
});

/** Programs that change what the interpreter itself uses. None gets more than its own calls. */
const TAMPERING: readonly (readonly [code: string, value: unknown])[] = [
  ["JSON.stringify = () => '{}'; return await tools.ping()", "pong"],
  ["JSON.parse = () => 'forged'; return await tools.ping()", "pong"],
  ["Map.prototype.get = () => ({ resolve() {}, reject() {} }); return 1", 1],
  ["Array.prototype.map = () => ['x']; console.log('y'); return 2", 2],
  ["Object.prototype.code = 7; Object.prototype.isError = true; return await tools.ping()", "pong"],
  ["Object.prototype.toJSON = () => 5; return {}", 5],
  ["try { tools.ping = 1 } catch {} return await tools.ping()", "pong"],
  ["globalThis.tools = undefined; return typeof tools", "object"],
  ["Promise.prototype.then = undefined; return 4", 4],
  ["Error.prototype.message = 'x'; return 5", 5],
];

behaviour("a program that changes its interpreter harms only itself", async (connect) => {
  const { client } = await connect({ handlers: [ping, codeMode()] });
  for (const [code, value] of TAMPERING) {
    const [text] = await run(client, code);
    assertEquals([code, text.replaceAll('"', "")], [code, `${value}`]);
    assertEquals(await run(client, "return await tools.ping()"), ["pong"]);
  }
});

/** Programs that never end or use too much, each with a part of the error. */
const ENDLESS: readonly (readonly [code: string, part: string])[] = [
  ["while (true);", "ms"],
  ["for (;;) await null", "ms"],
  ["const loop = () => Promise.resolve().then(loop); loop(); await new Promise(() => {})", "ms"],
  ["try { for (;;); } catch { return 'caught' } finally { for (;;); }", "ms"],
  ["const text = 'a'.repeat(4e6) + 'b'; for (;;) text.indexOf('ab'.repeat(1000))", "ms"],
  ["const list = Array(2e6).fill(0); for (;;) list.indexOf(1)", "ms"],
  ["/(a+)+$/.test('a'.repeat(40) + 'b'); for (;;);", "ms"],
  ["return { toJSON() { for (;;); } }", "ms"],
  ["throw { toString() { for (;;); }, toJSON: 1n }", "ms"],
];

/** Programs that use too much memory. */
const LARGE: readonly (readonly [code: string, part: string])[] = [
  ["const all = []; for (;;) all.push('x'.repeat(1e5) + all.length)", "MiB"],
  ["return new Uint8Array(2e9)", "MiB"],
  ["return 'x'.repeat(2 ** 29)", ""],
  ["let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a", ""],
  ["const f = () => f(); f()", ""],
];

behaviour("programs that use too much memory end", async (connect) => {
  const { client } = await connect({ handlers: [ping, codeMode({ limits: { cpuMs: 20_000 } })] });
  for (const [code, part] of LARGE) {
    const [text] = await run(client, code);
    assert(text.startsWith("!") && text.includes(part), `${code}: ${text}`);
  }
  assertEquals(await run(client, "return await tools.ping()"), ["pong"]);
});

behaviour("limits end programs, and the next one runs", async (connect) => {
  const { client } = await connect({ handlers: [ping, codeMode({ limits: { cpuMs: 150 } })] });
  for (const [code, part] of ENDLESS) {
    const [text] = await run(client, code);
    assert(text.startsWith("!") && text.includes(part), `${code}: ${text}`);
  }
  const { client: other } = await connect({ handlers: [ping, codeMode()] });
  assertEquals(await run(other, "return await tools.ping()"), ["pong"]);
});

behaviour("calls, logs and arguments have limits", async (connect) => {
  let calls = 0;
  const count = tool({ name: "count", input: { type: "object" }, run: () => `${++calls}` });
  const { client } = await connect({ handlers: [count, codeMode({ limits: { calls: 5, outputCharacters: 1000 } })] });
  const [many] = await run(client, "for (let i = 0; i < 9; i++) await tools.count()");
  assert(many.startsWith("!") && many.includes("5"), many);
  assertEquals(calls, 5);
  const [flood] = await run(client, "for (let i = 0; i < 2000; i++) tools.count().catch(() => {}); return 1");
  assertEquals([flood, calls <= 10], ["1", true]);
  const [value, logged] = await run(client, "for (let i = 0; i < 5000; i++) console.log('x'.repeat(99)); return 1");
  assert(value === "1" && logged.length < 1100, `${logged.length}`);
  assertEquals(await valueOf(client, "console.log('a'.repeat(1e6)); return 1"), 1);
  const [long] = await run(client, "await tools.count({ text: 'x'.repeat(2e6) })");
  assert(long.startsWith("!"), long.slice(0, 200));
  const [deep] = await run(client, "let a = {}; for (let i = 0; i < 2000; i++) a = { a }; await tools.count(a)");
  assert(deep.startsWith("!") || deep.startsWith("The program"), deep.slice(0, 200));
});

/** Programs that write more than the limit, because they change the functions with which the output is cut. */
const UNCUT = [
  "Array.prototype.map = () => ({ join: () => ({ slice: () => '', length: -1 }) }); for (let i = 0; i < 9000; i++) " +
  "console.log(1); return 1",
  "Array.prototype.map = () => ({ join: () => ({ slice: () => 'x'.repeat(900), length: -1 }) }); " +
  "for (let i = 0; i < 99; i++) console.log(1); return 1",
  "Array.prototype.map = () => ({ join: () => ({ slice: () => 'x'.repeat(9e6), length: -1 }) }); console.log(1)",
  "String.prototype.slice = () => 'x'.repeat(1e6); throw new Error('m')",
  "return await tools['\\u0001'.repeat(2e6)]()",
];

behaviour("a program gets no more output by changing its interpreter, and causes no fault", async (connect) => {
  const limits = { outputCharacters: 1000, cpuMs: 20_000 };
  const { client, takeFaults } = await connect({ handlers: [ping, codeMode({ limits })] });
  for (const code of UNCUT) {
    const texts = await run(client, code);
    assert(texts.join("").length < 12_000, `${code}: ${texts.join("").length}`);
    assert(!texts.join("").includes("Internal error"), texts.join("").slice(0, 200));
  }
  const { client: short } = await connect({ handlers: [codeMode({ limits: { outputCharacters: 1 } })] });
  assertEquals((await run(short, "console.log('long'); return 1"))[0], "1");
  assertEquals(takeFaults(), []);
});

behaviour("a program that is cancelled while its process starts causes no fault", async (connect) => {
  const { client, takeFaults } = await connect({ handlers: [ping, codeMode()] });
  for (const code of ["return 1", "for (;;);"]) {
    const controller = new AbortController();
    const running = client.callTool("run_code_with_effects", { code }, { signal: controller.signal });
    // Fixed wait: a test cannot see that a process has started, and not that it is ready.
    setTimeout(() => controller.abort(), 20);
    await running.catch(() => {});
  }
  assertEquals(await run(client, "return await tools.ping()"), ["pong"]);
  assertEquals(takeFaults(), []);
});

behaviour("a program with a long fence does not block the server", async (connect) => {
  const { client } = await connect({ handlers: [ping, codeMode()] });
  const since = performance.now();
  for (const code of [`\`\`\`\n${"\n".repeat(65_000)}`, `\`\`\`\n${" ".repeat(65_000)}x`]) await run(client, code);
  assert(performance.now() - since < 5000);
});

behaviour("odd results of tools reach the program", async (connect) => {
  const huge = tool({ name: "huge", run: () => "\u0000".repeat(400_000) });
  const proto = tool({ name: "proto", run: () => JSON.parse('{"__proto__":{"a":1},"constructor":2}') });
  const lines = tool({ name: "lines", run: () => "a\nb\u2028c\r\n" });
  const { client } = await connect({ handlers: [huge, proto, lines, codeMode()] });
  assertEquals(await valueOf(client, "return (await tools.huge()).length"), 400_000);
  assertEquals(await valueOf(client, "const a = await tools.proto(); return [Object.keys(a), a.a]"), [[
    "__proto__",
    "constructor",
  ], null]);
  assertEquals(await valueOf(client, "return [await tools.lines()]"), ["a\nb\u2028c\r\n"]);
});

behaviour("a client uses only its share of programs, and other clients run theirs", async (connect) => {
  const waiting: (() => void)[] = [];
  const hold = tool({ name: "hold", run: () => new Promise<string>((resolve) => waiting.push(() => resolve("done"))) });
  const limits = { programs: 4, programsPerClient: 2 };
  const options = { handlers: [hold, ping, codeMode({ limits })] };
  const { client, join } = await connect(options, { principal: { id: "ada" } });
  const other = await join({ principal: { id: "bob" } });
  const held = [1, 2].map(() => run(client, "return await tools.hold()"));
  await until(() => waiting.length === 2, "two programs wait");
  const refused = await run(client, "return 1").catch(({ code }) => [code]);
  assertEquals(refused, [-31503]);
  // Waiting programs use no place of the programs that compute.
  assertEquals(await run(other, "return await tools.ping()"), ["pong"]);
  for (const resume of waiting) resume();
  assertEquals(await Promise.all(held), [["done"], ["done"]]);
  assertEquals(await run(client, "return 1"), ["1"]);
}, { perInstance: "limits" });

behaviour("programs that spin leave the server free, and take turns", async (connect) => {
  const limits = { cpuMs: 300, programs: 20, programsPerClient: 20 };
  const { client, join } = await connect({ handlers: [ping, codeMode({ limits })] }, { principal: { id: "ada" } });
  const other = await join({ principal: { id: "bob" } });
  const spinning = [1, 2, 3, 4].map(() => run(client, "for (;;);"));
  // A program of another client gets the next turn, and does not wait for all of them.
  assertEquals(await run(other, "return await tools.ping()"), ["pong"]);
  assertEquals((await other.callTool("ping")).content.length, 1);
  assert((await Promise.all(spinning)).every(([text]) => text.startsWith("!")));
}, { perInstance: "limits" });
