/**
 * Finds out why Node cannot read a file: because it reads the file as CommonJS, as the `package.json` of `npm init -y`
 * tells it, or because it only removes types.
 */
import { toFolder } from "../ready/files/path.ts";
import { hasErrorCode } from "../core/kit/error_code.ts";
import { isObject } from "../core/kit/json.ts";
import { decodePath } from "../core/kit/stack.ts";
import { platform } from "./platform.ts";
import { findProjectFile } from "./project_files.ts";

/** The command that makes Node read the files of a package as ECMAScript modules. */
export const SET_MODULE_TYPE = "npm pkg set type=module";

/**
 * Returns the path of the `package.json` because of which Node reads the files of a folder as CommonJS. Returns
 * `undefined` on other runtimes, and if there is no such file.
 */
export async function findCommonJsPackage(folder: string): Promise<string | undefined> {
  if (platform.runtime !== "node") return;
  const found = await findProjectFile(folder, { names: ["package.json"], test: () => true });
  const parsed: unknown = found && JSON.parse(found.text);
  return isObject(parsed) && parsed.type === "commonjs" ? found?.path : undefined;
}

/** What to write instead of syntax that Node cannot remove, by a word of Node's message. */
const ERASABLE: readonly (readonly [word: RegExp, remedy: string])[] = [
  [/ enum /, 'const Color = { Red: "red" } as const instead of an enum'],
  [/ parameter property /, "the property into the class, and assign it in the constructor"],
  [/ namespace /, "a module or an object instead of a namespace"],
  [/ import equals /, 'import x from "x" instead of import x = require("x")'],
];

/** Returns the remedy if Node cannot read the syntax of a file. */
export async function findModuleRemedy(error: unknown, url: string): Promise<string | undefined> {
  if (platform.runtime !== "node" || !(error instanceof SyntaxError)) return;
  if (hasErrorCode(error) && error.code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") {
    const [, remedy = "other syntax"] = ERASABLE.find(([word]) => word.test(error.message)) ?? [];
    return `Node removes types, but does not compile TypeScript; write ${remedy}, or run the file with Deno or Bun. ` +
      "With erasableSyntaxOnly in tsconfig.json, TypeScript reports such syntax.";
  }
  if (!/outside a module|Unexpected token 'export'|top level bodies of modules/.test(error.message)) return;
  // The stack begins with the position, such as `/home/me/server.ts:1`. The file can be an import of the target.
  const [, place] = /^(?:file:\/\/)?([/a-z].*):\d+\n/i.exec(error.stack ?? "") ?? [];
  const file = decodePath(place ?? new URL(url).pathname);
  const [, stem] = /^(.*)\.c[jt]s$/s.exec(file.slice(file.lastIndexOf("/") + 1)) ?? [];
  if (stem !== undefined) {
    return `Node reads this file as CommonJS because of its extension; rename the file to ${stem}.ts or ${stem}.mjs.`;
  }
  const path = await findCommonJsPackage(toFolder(file));
  return path && `Node reads this file as CommonJS because ${path} has "type": "commonjs"; run ${SET_MODULE_TYPE} in ` +
      "the folder of this package.json.";
}
