// An import of an entry point or of a name that the package does not have: the remedy names the right one, for the messages
// of each runtime. npm_start_test.ts runs such files with the packed package.
import { assertEquals } from "@std/assert";
import { findImportRemedy } from "../../src/cli/own_imports.ts";
import { root, withFolder } from "../support/folder.ts";
import { sentence } from "../support/messages.ts";

/** Messages of the runtimes about a missing name. */
const names: readonly ((name: string, module: string) => string)[] = [
  (name, module) => `The requested module '${module}' does not provide an export named '${name}'`,
  (name, module) => `Export named '${name}' not found in module '${module}'.`,
];

Deno.test("the remedy for a missing name is the entry that exports it, or the most similar name", async () => {
  for (const toMessage of names) {
    const find = (name: string, module: string) => findImportRemedy(new SyntaxError(toMessage(name, module)));
    for (const module of ["@x/mcp", "jsr:@x/mcp@^0.1.0", "npm:@x/mcp", `${root}mod.ts`]) {
      assertEquals(await find("memoryStore", module), sentence("@x/mcp/stores"));
    }
    assertEquals(await find("creatServer", "@x/mcp"), sentence("createServer"));
    assertEquals(await find("quotas", "jsr:@x/mcp@0.1.0/stores"), sentence("quota", "@x/mcp/layers"));
    // A type must not lead to a function such as `connect`.
    assertEquals(await find("Context", "@x/mcp"), sentence("type Context"));
    assertEquals(await find("zzzzzzzz", "@x/mcp"), undefined);
    for (const module of ["./local.ts", "@x/mcpx", "other", `${root}src/core/kit/json.ts`]) {
      assertEquals(await find("memoryStore", module), undefined);
    }
  }
  for (const message of [names[0]("default", "@x/mcp"), "Missing 'default' export in module '@x/mcp'."]) {
    assertEquals(await findImportRemedy(new SyntaxError(message)), sentence("default"));
  }
});

Deno.test("the remedy for a missing entry is the most similar entry, or the list of entries", async () => {
  await withFolder({ "a.ts": `import { a } from '@x/mcp/auth';\nimport { b } from '@x/mcp/store';\n` }, async (cwd) => {
    const toMessages = (entry: string) => [
      `Package subpath './${entry}' is not defined by "exports" in /home/me/node_modules/@x/mcp/package.json imported from x`,
      `[ERR_PACKAGE_PATH_NOT_EXPORTED] Package subpath './${entry}' is not defined by "exports" in 'C:\\me\\@x/mcp\\package.json'`,
      `Unknown export './${entry}' for '@x/mcp@0.1.0'.\n  Package exports:\n * .`,
      `Loading unprepared module: file:///home/me/@x/mcp/${entry}, imported from: file:///home/me/a.ts`,
    ];
    const find = (message: string) => findImportRemedy(new Error(message));
    for (const message of [...toMessages("store"), `Cannot find package '@x/mcp' imported from ${cwd}/a.ts`]) {
      assertEquals(await find(message), sentence("@x/mcp/stores"));
    }
    for (const message of toMessages("redis")) assertEquals(await find(message), sentence("@x/mcp/stores/redis"));
    for (const message of toMessages("zzzzzzzz")) assertEquals(await find(message), sentence("@x/mcp/testing"));
  });
  await withFolder({ "a.ts": `import { a } from '@x/mcp/auth';\n` }, async (cwd) => {
    assertEquals(
      await findImportRemedy(new Error(`Cannot find package '@x/mcp' imported from ${cwd}/a.ts`)),
      undefined,
    );
  });
});
