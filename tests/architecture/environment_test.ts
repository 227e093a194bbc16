// Test files that run together share a process. If a test leaves an environment variable set, the variable changes the
// programs that later tests start.
import { readdir, readFile } from "node:fs/promises";
import { assertEquals } from "@std/assert";

const CHANGE =
  /\bDeno\.env\.(?:set|delete)\(|\bdelete process\.env\b|\bprocess\.env(?:\.\w+|\[[^\]]*\])\s*\??\??=(?!=)/;

const root = new URL("../", import.meta.url);

Deno.test("the search finds a write to an environment variable, and ignores a read", () => {
  const changes = ['Deno.env.set("A", "1")', "process.env.A = 1", "process.env[name] ??= 1", "delete process.env.A"];
  assertEquals(changes.filter((text) => !CHANGE.test(text)), []);
  const reads = ['Deno.env.get("A")', "process.env.A === 1", "const { A } = process.env;"];
  assertEquals(reads.filter((text) => CHANGE.test(text)), []);
});

Deno.test("only withEnvironment changes environment variables in tests", async () => {
  const paths = (await readdir(root, { recursive: true })).map((path) => path.replaceAll("\\", "/"));
  const files = paths.filter((path) => path.endsWith(".ts") && path !== "architecture/environment_test.ts");
  const found = await Promise.all(files.map(async (path) => CHANGE.test(await readFile(new URL(path, root), "utf8"))));
  assertEquals(files.filter((_path, at) => found[at]), ["support/environment.ts"]);
});
