// Runs servers in workerd, the runtime of Workers. Workerd has no Deno or Bun globals, so the server can use only web
// standards. These tests are a separate task, because they install workerd (160 MB).
//
// deno task test:workerd [NAME…]
import { runInLanes } from "../support/lanes.ts";
import { checks as objects } from "./objects.ts";
import { checks as plain } from "./plain.ts";
import { VERSION } from "./workerd.ts";

const all = { ...plain, ...objects };
const names = Deno.args.length ? Deno.args : Object.keys(all);
const unknown = names.find((name) => !(name in all));
if (unknown !== undefined) {
  throw new Error(`Cannot run "${unknown}": there is no such test; choose from:\n${Object.keys(all).join("\n")}`);
}
let failed = 0;
await runInLanes(names, async (name) => {
  try {
    await all[name]();
    console.log(`ok ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}\n${error instanceof Error ? error.stack : error}`);
  }
});
console.log(`workerd ${VERSION}`);
console.log(`${names.length - failed} passed, ${failed} failed`);
Deno.exit(failed ? 1 : 0);
