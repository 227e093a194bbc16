// Test files of one run share a process, so a variable that a test leaves set changes the programs of later tests.
import { readdir, readFile } from "node:fs/promises";
import { assertEquals } from "@std/assert";

const CHANGE =
  /\bDeno\.env\.(?:set|delete)\(|\bdelete process\.env\b|\bprocess\.env(?:\.\w+|\[[^\]]*\])\s*\??\??=(?!=)/;

const root = new URL("../", import.meta.url);

Deno.test("a write to an environment variable is found, and a read is accepted", () => {
  const changes = ['Deno.env.set("A", "1")', "process.env.A = 1", "process.env[name] ??= 1", "delete process.env.A"];
  assertEquals(changes.filter((text) => !CHANGE.test(text)), []);
  const reads = ['Deno.env.get("A")', "process.env.A === 1", "const { A } = process.env;"];
  assertEquals(reads.filter((text) => CHANGE.test(text)), []);
});

Deno.test("only withEnvironment changes the environment of the tests", async () => {
  const paths = (await readdir(root, { recursive: true })).map((path) => path.replaceAll("\\", "/"));
  const files = paths.filter((path) => path.endsWith(".ts") && path !== "architecture/environment_test.ts");
  const found = await Promise.all(files.map(async (path) => CHANGE.test(await readFile(new URL(path, root), "utf8"))));
  assertEquals(files.filter((_path, at) => found[at]), ["support/environment.ts"]);
});
