// Compiler errors for common mistakes in authentication name the incorrect property or value.
import { assert, assertEquals } from "@std/assert";

const isDeno = navigator.userAgent.startsWith("Deno");
const library = new URL("../../mod.ts", import.meta.url).href;
const auth = new URL("../../src/auth/auth.ts", import.meta.url).href;
const config = new URL("../../deno.json", import.meta.url).pathname;

/** Expressions with a mistake, and the compiler's message for each expression. */
const MISTAKES: readonly (readonly [code: string, ...message: readonly string[]])[] = [
  [
    `createServer({ name: "x", version: "1", auth: "secret" })`,
    "Type 'string' is not assignable to type 'Authenticate | Authentication<Principal> | readonly Authentication<Principal>[] | undefined'.",
  ],
  [
    `createServer({ name: "x", version: "1", auth: () => ({ name: "ada" }) })`,
    "Type '() => { name: string; }' is not assignable to type 'Authenticate | Authentication<Principal> | readonly Authentication<Principal>[] | undefined'.",
    "  Type '() => { name: string; }' is not assignable to type 'Authenticate'.",
    "    Type '{ name: string; }' is not assignable to type 'Principal | AuthRefusal | Promise<Principal | AuthRefusal | " +
    "undefined> | undefined'.",
    "      Property 'id' is missing in type '{ name: string; }' but required in type 'Principal'.",
  ],
  [
    `tool({ name: "t", scopes: "notes:read", run: () => "" })`,
    "Type 'string' is not assignable to type 'readonly string[]'.",
  ],
  [
    `resource({ uri: "x://y", name: "t", scopes: [5], read: () => "" })`,
    "Type 'number' is not assignable to type 'string'.",
  ],
  [
    `apiKey({ keys: { ada: { scopes: ["a"] } } })`,
    "Type '{ scopes: string[]; }' is not assignable to type 'string | ApiKeyCaller | undefined'.",
    "  Property 'key' is missing in type '{ scopes: string[]; }' but required in type 'ApiKeyCaller'.",
  ],
  [
    `basicAuth({ users: { ada: { pasword: "x" } } })`,
    "Type '{ pasword: string; }' is not assignable to type 'string | BasicUser | undefined'.",
    "  Property 'password' is missing in type '{ pasword: string; }' but required in type 'BasicUser'.",
  ],
  [
    `customAuth(() => "ada")`,
    "Type 'string' is not assignable to type 'Principal | AuthRefusal | Promise<Principal | AuthRefusal | undefined> | " +
    "undefined'.",
  ],
  [`customAuth(() => ({ id: "a", scopes: "x" }))`, "Type 'string' is not assignable to type 'readonly string[]'."],
  [
    `refuseRequest(404)`,
    "Argument of type '404' is not assignable to parameter of type '400 | 401 | 403 | 429 | 503'.",
  ],
];

Deno.test({
  name: "the compiler names the mistake in an authentication",
  // The test needs the type checker of Deno.
  ignore: !isDeno,
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      const head = [
        `import { createServer, resource, tool } from "${library}";`,
        `import { apiKey, basicAuth, customAuth, refuseRequest } from "${auth}";`,
      ];
      const lines = MISTAKES.map(([code], i) => `export const x${i} = ${code};`);
      await Deno.writeTextFile(`${folder}/mistakes.ts`, [...head, ...lines].join("\n"));
      const { stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["check", "--quiet", "--config", config, `${folder}/mistakes.ts`],
        env: { NO_COLOR: "1" },
      }).output();
      const errors = new TextDecoder().decode(stderr).split(/^TS\d+ \[ERROR\]: /m).slice(1);
      assertEquals(errors.length, MISTAKES.length);
      for (const [i, [code, ...message]] of MISTAKES.entries()) {
        const text = errors[i].slice(0, errors[i].indexOf("export const"));
        assert(errors[i].includes(code), `${code}:\n${errors[i]}`);
        // Sort the members of unions, because the compiler lists them in an unspecified order.
        const toOrder = (line: string) =>
          line.replace(/\d+( \| \d+)+/, (union) => union.split(" | ").sort().join(" | "));
        assertEquals(text.trimEnd().split("\n").map(toOrder), message.map(toOrder));
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
