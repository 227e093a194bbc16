// Tests wait for a state and not for a fixed time, because a fixed time is too short on a loaded machine and too long
// on any other machine.
import { readdir, readFile } from "node:fs/promises";
import { assertEquals } from "@std/assert";

/** The files that wait for a fixed time, each with the reason. */
const REASONS: Readonly<Record<string, string>> = {
  "cli/cli_test.ts":
    "a program prints nothing between its start and its signal, and another program keeps running after its signal",
  "cli/config/folder_test.ts": "the watcher of a folder does not report when it has read the first version",
  "cli/config_test.ts": "the watcher of a file does not report when it has handled the last change",
  "cli/doctor_store_test.ts": "a store engine that takes a fixed time for one command",
  "cli/doctor_test.ts": "a server that takes a fixed time for each page, and a client that stops during a read",
  "cli/inspector/inspector_test.ts": "a browser sends the events of policy violations after the violation",
  "cli/inspector/server.ts": "a tool that takes as long as its caller asks for",
  "cli/sign_in/token_folder_test.ts": "a lock that is held longer than the timeout for locks of dead processes",
  "cli/target_watcher_test.ts": "reloads that take longer than the interval of the watcher",
  "client/bounds_test.ts": "each page takes less time than the timeout of one request",
  "client/detect_era_test.ts": "processes that respond after the timeout of a probe",
  "hostile/attack_bodies_test.ts": "the memory of bytes on their way to a server cannot be observed as a state",
  "hostile/http_headers_test.ts": "a body that is sent one byte at a time",
  "hostile/life_close_test.ts": "a program that must end early because of a failure",
  "hostile/release_test.ts": "a client that reads its response late",
  "hostile/streams_pressure_test.ts": "the kernel does not report when its buffers are full",
  "hostile/streams_quiet_test.ts": "runtimes close connections that are idle for some time",
  "observe/telemetry_program.ts": "queries that take different times, so that calls end in another order",
  "peers/peer.ts": "a client of another library does not report which messages it has not received",
  "peers/v1_test.ts": "a client of another library does not report which messages it has not received",
  "stores/instances_test.ts": "other instances read the store at intervals, and do not report a read",
  "stores/operations_test.ts": "the writes of one second are counted",
  "stores/slow_store_test.ts": "a store engine that takes a fixed time for each command",
  "stores/shared_tenant_limits_test.ts": "instances with more load than the limit allows are observed for a fixed time",
  "support/store_process.ts": "a store whose operations take random times",
  "support/tenant_instance.ts": "a tool that takes a fixed time",
  "support/steps.ts": "the output of a process that a step has left running does not end",
  "transcripts/transcripts_test.ts": "the absence of a message cannot be observed as a state",
  "transports/exit_program.ts": "a program whose work takes longer than its shutdown",
  "cli/inspector/apps_server.ts": "a browser does not report to a page every request that it refuses",
  "cli/services_process_test.ts": "the CLI prints nothing when it starts to read its input",
  "transports/stdio_end_test.ts": "the test runner checks for timers after the last timer should have stopped",
  "transports/stdio_test.ts": "the CPU time that an idle process uses during a fixed time",
  "worker/heavy.ts": "threads that fail after their call, or never end",
  "worker/worker_test.ts": "no event reports that an idle thread has ended",
};

/** Folders whose programs measure time, or run for a fixed time. */
const OTHERS = /^(?:load|fuzz|conformance|workerd)\//;

/**
 * Matches a wait for a fixed time. A timer that is assigned to a variable is not a match, because such a timer is a
 * timeout that is cleared later.
 */
const WAIT = /(?<!= )setTimeout\((?:\(\) => )?(?:resolve|done|stop\.abort)\b(?:\([^()]*\))?,(?!\s*0\b)/;

const root = new URL("../", import.meta.url);
const self = "architecture/waits_test.ts";

async function listWaits(): Promise<string[]> {
  const paths = (await readdir(root, { recursive: true })).map((path) => path.replaceAll("\\", "/"));
  const files = paths.filter((path) => path.endsWith(".ts") && !OTHERS.test(path) && path !== self);
  const waits = await Promise.all(files.map(async (path) => WAIT.test(await readFile(new URL(path, root), "utf8"))));
  return files.filter((_path, at) => waits[at]).sort();
}

Deno.test("the search finds a wait for a fixed time, and ignores a turn of the event loop and a timeout", () => {
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

Deno.test("only the listed test files wait for a fixed time", async () => {
  // This file is excluded, because its helper `until` polls for a state.
  const waits = (await listWaits()).filter((path) => path !== "support/behaviour.ts");
  assertEquals(waits, Object.keys(REASONS).sort());
});
