// Tests wait for states, not for fixed times, which are too short on a loaded machine and too long on any other.
import { readdir, readFile } from "node:fs/promises";
import { assertEquals } from "@std/assert";

/** Files with fixed waits, and the reason of each. */
const REASONS: Readonly<Record<string, string>> = {
  "cli/cli_test.ts": "a program between its start and its signal prints nothing, and one outlives its signal by a time",
  "cli/config/folder_test.ts": "the watcher of a folder does not tell when it has seen the first version",
  "cli/config_test.ts": "the watcher of a file does not tell when it has told its last change",
  "cli/doctor_store_test.ts": "an engine that takes a time for one command",
  "cli/doctor_test.ts": "a server that takes a time for each page, and a client that stops during a read",
  "cli/inspector/inspector_test.ts": "a browser sends its events of breaches after what they are about",
  "cli/inspector/server.ts": "a tool that takes the time that its caller names",
  "cli/sign_in/token_folder_test.ts": "a lock that is held longer than a dead process would hold it",
  "cli/target_watcher_test.ts": "reloads that take longer than the watcher waits between two looks",
  "client/bounds_test.ts": "each page takes less time than the timeout of one request",
  "client/detect_era_test.ts": "processes that are late for the timeout of a probe",
  "hostile/attack_bodies_test.ts": "the memory of bytes on their way to a server is no state to wait for",
  "hostile/http_headers_test.ts": "a body of one byte at a time",
  "hostile/life_close_test.ts": "a program that a failure has to end before its time",
  "hostile/release_test.ts": "a client that reads later than the server waits",
  "hostile/streams_pressure_test.ts": "the buffers of the kernel do not tell when they are full",
  "hostile/streams_quiet_test.ts": "runtimes close connections that are quiet for a time",
  "observe/telemetry_program.ts": "queries that take a time, so that calls end in another order",
  "peers/peer.ts": "a client of another library does not tell what it has not received",
  "peers/v1_test.ts": "a client of another library does not tell what it has not received",
  "stores/instances_test.ts": "other instances read the store at intervals, and do not tell when they have read",
  "stores/operations_test.ts": "the writes of a second are counted",
  "stores/slow_store_test.ts": "an engine that takes a time for each command",
  "stores/shared_tenant_limits_test.ts": "instances under more load than the limit allows are watched for a time",
  "support/store_process.ts": "a store that takes a random time",
  "support/tenant_instance.ts": "a tool that takes a time",
  "support/steps.ts": "the output of a program that a step has left behind does not end",
  "transcripts/transcripts_test.ts": "a message that should not come has no sign",
  "transports/exit_program.ts": "a program whose work outlives what would end it",
  "cli/inspector/apps_server.ts": "a browser does not tell a page of all that it refuses",
  "cli/services_process_test.ts": "the command line prints nothing once it reads",
  "transports/stdio_end_test.ts": "the test runner looks for timers once the last one should have stopped",
  "transports/stdio_test.ts": "the processor time that an idle process uses in a time",
  "worker/heavy.ts": "threads that fail after their call, or do not end",
  "worker/worker_test.ts": "no event tells that an idle thread has ended",
};

/** Folders whose programs measure time, or run for one. */
const OTHERS = /^(?:load|fuzz|conformance|workerd)\//;

/** A wait for a time. A timer that is kept, to be cleared, is the timeout of a wait for a state. */
const WAIT = /(?<!= )setTimeout\((?:\(\) => )?(?:resolve|done|stop\.abort)\b(?:\([^()]*\))?,(?!\s*0\b)/;

const root = new URL("../", import.meta.url);
const self = "architecture/waits_test.ts";

async function listWaits(): Promise<string[]> {
  const paths = (await readdir(root, { recursive: true })).map((path) => path.replaceAll("\\", "/"));
  const files = paths.filter((path) => path.endsWith(".ts") && !OTHERS.test(path) && path !== self);
  const waits = await Promise.all(files.map(async (path) => WAIT.test(await readFile(new URL(path, root), "utf8"))));
  return files.filter((_path, at) => waits[at]).sort();
}

Deno.test("a wait for a fixed time is found, and a turn of the event loop and a timeout are none", () => {
  const wait = "await new Promise((resolve) => setTimeout(resolve, 30));";
  assertEquals([wait, wait.replace("30", "MS"), wait.replaceAll("resolve", "done")].map((text) => WAIT.test(text)), [
    true,
    true,
    true,
  ]);
  const others = [
    wait.replace(", 30", ", 0"),
    wait.replace(", 30", ""),
    "const late = setTimeout(() => child.kill(), 9);",
  ];
  assertEquals(others.map((text) => WAIT.test(text)), [false, false, false]);
});

Deno.test("only the listed tests wait for a fixed time", async () => {
  // The helper that polls for a state.
  const waits = (await listWaits()).filter((path) => path !== "support/behaviour.ts");
  assertEquals(waits, Object.keys(REASONS).sort());
});
