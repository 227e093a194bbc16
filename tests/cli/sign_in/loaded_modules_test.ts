// Clients and commands without a sign-in load neither the modules nor the packages of the sign-in.
import { assertEquals } from "@std/assert";
import { listModules } from "../../architecture/loaded_modules.ts";
import { testProcesses } from "../../support/command_line.ts";

testProcesses("no sign-in module is loaded before a server requires a sign-in", async () => {
  const commands = [
    "main",
    "call",
    "task",
    "read",
    "prompt",
    "inspect",
    "inspector/serve",
    "doctor",
    "bridge",
    "login",
  ];
  for (const entry of [...commands.map((name) => `src/cli/${name}.ts`), "src/client/client.ts"]) {
    const modules = await listModules(entry);
    assertEquals(modules.filter((path) => /client\/oauth|oauth4webapi|jose/.test(path)), [], entry);
  }
  const found = await listModules("src/cli/sign_in/command_sign_in.ts");
  assertEquals(
    found.some((path) => path.includes("oauth4webapi")),
    true,
    "the test did not find the packages of the sign-in",
  );
});
