// Twenty kills of the process that runs a program after its question: no effect happens twice, and what another instance
// cannot know, the program reads.
import { assert, assertEquals } from "@std/assert";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import process from "node:process";
import { tmpdir } from "node:os";
import { until } from "../support/behaviour.ts";
import { closeAtEnd } from "../support/running.ts";
import { openInstance, send } from "./kill_instance.ts";

const root = new URL("../../", import.meta.url).pathname;

/** The lines after which the process is killed. Each line comes twice or more, and others have come before. */
const POINTS = ["begin 3", "done 3", "begin 4", "done 4", "begin 5", "done 5"];
const KILLS = 20;

function start(args: readonly string[]) {
  const file = `${root}tests/code/kill_process.ts`;
  const words = process.versions.deno ? ["run", "--quiet", "--no-check", "-A", file] : [file];
  const child = spawn(process.execPath, [...words, ...args], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  return { child, exited: new Promise((resolve) => child.once("close", resolve)) };
}

Deno.test("after each of twenty kills, no effect happens twice, and each unknown effect is reported", async () => {
  const folder = mkdtempSync(`${tmpdir()}/kills-`);
  const database = `${folder}/store.db`;
  let unknown = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const effects = `${folder}/effects-${kill}`;
    const read = () => existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : [];
    const server = closeAtEnd(openInstance(database, effects));
    const { result } = await send(server);
    assertEquals(read(), ["begin 1", "done 1", "begin 2", "done 2"]);
    const keys = Object.keys(result.inputRequests);
    const { child, exited } = start([database, effects, result.requestState, JSON.stringify(keys)]);
    const point = POINTS[kill % POINTS.length];
    await until(() => read().includes(point), point);
    child.kill("SIGKILL");
    await exited;
    const before = read();
    const { result: last } = await send(server, result.requestState, keys);
    const out: readonly string[] = JSON.parse(last.content[0].text);
    assertEquals(out.slice(0, 3), ["ok 1", "ok 2", "accept"]);
    for (const id of [1, 2, 3, 4, 5]) {
      const text = out[id <= 2 ? id - 1 : id];
      const isKnown = text === `ok ${id}`;
      if (!isKnown) unknown++;
      const times = read().filter((line) => line === `begin ${id}`).length;
      // A call is recorded before it begins, so an effect that did not happen may be unknown too.
      assert(times === 1 || times === 0 && !isKnown, `effect ${id}: ${times} times, ${text}: ${read()}`);
      // What the killed process can have begun, and did not end, cannot be known.
      const mayHaveBegun = before.includes(`begin ${id}`) || before.includes(`done ${id - 1}`);
      assert(isKnown || mayHaveBegun, `effect ${id}: ${text}`);
      if (before.includes(`begin ${id}`) && !before.includes(`done ${id}`)) assert(!isKnown, `effect ${id}: ${text}`);
    }
  }
  assert(unknown > 0, "no kill came during an effect");
  rmSync(folder, { recursive: true });
});
