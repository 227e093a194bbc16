// The npm package's program on the newest version of Node, in a folder without installed packages, as `npx` starts it.
// npm_program_test.ts runs the program on every version of each runtime.
import { assert } from "@std/assert";
import { findNode, NODE_VERSIONS } from "../support/node_versions.ts";
import { needs, requireAll } from "../support/required.ts";
import { checkCommands, withPackage } from "./npm_program.ts";

const isDeno = typeof Deno !== "undefined"; // Only Deno starts the processes of all runtimes.
const node = isDeno ? await findNode(NODE_VERSIONS[NODE_VERSIONS.length - 1]) : { missing: "Deno" };
const missing = "missing" in node ? node.missing : undefined;
const name = "the installed program calls and lists tools of a file in a folder without installed packages";

Deno.test({
  ...isDeno ? needs(name, missing) : { name, ignore: true },
  async fn() {
    requireAll(missing);
    assert("path" in node);
    await withPackage((installed, cwd) => checkCommands([node.path, `${installed}/bin.js`], { cwd }));
  },
});
