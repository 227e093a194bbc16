// The compiler's errors for the most frequent mistakes with extensions. One line names the missing or incorrect part.
import { testTypeErrors } from "../support/type_errors.ts";

const root = new URL("../../", import.meta.url);

const method = (rest: string) =>
  `extension({ id: "a/b", methods: { "a/get": { params: z.object({ a: z.string() }), ${rest} } } })`;

/** Mistakes, each with a line of the compiler's error. */
const mistakes: readonly (readonly [code: string, line: string])[] = [
  [`extension({ settings: {} })`, "Property 'id' is missing in type '{ settings: {}; }' but required"],
  [method(`subject: "b", run: ({ a }) => ({ a })`), `Type '"b"' is not assignable to type '"a"'.`],
  [method(`run: ({ a }) => a`), "Type 'string' is not assignable to type 'Result | Promise<Result>'."],
  [method(`run: ({ b }) => ({ b })`), "Property 'b' does not exist on type '{ a: string; }'."],
  [method(""), "Property 'run' is missing in type"],
  [`extension({ id: "a/b", listen: { ids: { grant: () => true } } })`, "Property 'filter' is missing in type"],
  [
    `extension({ id: "a/b", listen: { ids: { filter: z.array(z.string()) } } }).publish("id", { method: "m" })`,
    `Argument of type '"id"' is not assignable to parameter of type '"ids"'.`,
  ],
  [
    `tool({ name: "a", use: [extension({ id: "a/b" })], run: () => "" })`,
    "Type 'Extension<never>' is not assignable to type 'UseItem",
  ],
  [
    `extension({ id: "a/b" }).layer({ around: (_call, next) => { next(); } })`,
    "Type 'void' is not assignable to type 'Result | Promise<Result>'.",
  ],
  [`clientExtension({ id: "a/b", results: { task: { finish: () => ({}) } } })`, "Property 'schema' is missing in type"],
];

testTypeErrors(
  `import { extension, tool } from "${new URL("mod.ts", root).href}";
import { clientExtension } from "${new URL("src/client/client.ts", root).href}";
import { z } from "zod";
void [extension, tool, clientExtension, z];`,
  mistakes.map(([code, line]) => ({ name: `the mistake in ${code}`, code, line, most: 4 })),
);
