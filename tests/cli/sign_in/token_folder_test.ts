// The folder in which the CLI stores tokens. Several processes use it concurrently.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { tokenFolder } from "../../../src/cli/sign_in/token_folder.ts";
import { testProcesses } from "../../support/command_line.ts";
import { sentence } from "../../support/messages.ts";
import { root } from "../../support/processes.ts";

function inFolder(name: string, run: (path: string) => Promise<void>): void {
  Deno.test(name, async () => {
    const folder = mkdtempSync(`${tmpdir()}/mcp-tokens-`);
    try {
      await run(`${folder}/deep/tokens`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}

const put = (value: string | undefined) => () => Promise.resolve(value);

inFolder("values are stored by key, and only their owner can read them", async (path) => {
  const folder = tokenFolder(path);
  assertEquals([await folder.get("a"), await folder.has("a"), await folder.keys()], [undefined, false, []]);
  assertEquals(await folder.update("a", put("secret")), "secret");
  assertEquals(await folder.update("../../b\0", put("other")), "other");
  const again = tokenFolder(path);
  assertEquals([await again.get("a"), await again.get("../../b\0")], ["secret", "other"]);
  assertEquals((await again.keys()).toSorted(), ["../../b\0", "a"]);
  assertEquals(readdirSync(`${path}/..`), ["tokens"]);
  const modes = [path, ...readdirSync(path).map((name) => `${path}/${name}`)].map((each) =>
    statSync(each).mode & 0o777
  );
  assertEquals(modes, [0o700, 0o600, 0o600]);
  await again.update("a", put(undefined));
  assertEquals([await folder.get("a"), await folder.has("a"), await folder.has("../../b\0")], [undefined, false, true]);
});

inFolder(
  "changes to one value run sequentially, changes to different values run concurrently, and an error changes nothing",
  async (path) => {
    const folders = [1, 2, 3].map(() => tokenFolder(path));
    let running = 0;
    const count = async (current: string | undefined) => {
      assertEquals(++running, 1);
      await new Promise((resolve) => setTimeout(resolve));
      running--;
      return String(Number(current ?? 0) + 1);
    };
    await Promise.all(Array.from({ length: 12 }, (_, at) => folders[at % 3].update("n", count)));
    assertEquals(await folders[0].get("n"), "12");
    await folders[0].update("n", async () => {
      await folders[1].update("other", put("free"));
      return "13";
    });
    await assertRejects(() => folders[0].update("n", () => Promise.reject(new Error("no"))), Error, "no");
    assertEquals([await folders[1].get("n"), await folders[1].get("other")], ["13", "free"]);
  },
);

inFolder("a file that is not private, not a regular file or incomplete is refused with an error", async (path) => {
  const folder = tokenFolder(path);
  await folder.update("a", put("secret"));
  const file = `${path}/${readdirSync(path)[0]}`;
  chmodSync(file, 0o644);
  assertStringIncludes((await assertRejects(() => folder.get("a"), Error)).message, sentence("chmod 600"));
  chmodSync(file, 0o600);
  for (const text of ["", "{", "null", '{"key":"b","value":"x"}', '{"key":"a","value":5}']) {
    writeFileSync(file, text);
    assertEquals(await folder.get("a"), undefined);
  }
  assertEquals(await folder.update("a", put("new")), "new");
  rmSync(file);
  symlinkSync("/etc/hostname", file);
  assertStringIncludes((await assertRejects(() => folder.get("a"), Error)).message, sentence(file));
});

inFolder(
  "a folder that other users can write to is refused with the remedy",
  async (path) => {
    const folder = tokenFolder(path);
    const parent = path.replace(/\/tokens$/, "");
    await folder.update("a", put("secret"));
    const check = async (remedy: string) => {
      for (const use of [() => folder.get("a"), () => folder.keys(), () => folder.update("a", put("evil"))]) {
        const { message } = await assertRejects(async () => void await use(), Error);
        assertStringIncludes(message, sentence(path, remedy));
      }
    };
    for (const mode of [0o777, 0o720, 0o702, 0o770, 0o1777]) {
      chmodSync(path, mode);
      await check(`chmod go-w ${path}`);
    }
    chmodSync(path, 0o755);
    assertEquals(await folder.get("a"), "secret", "the names of the files reveal nothing");
    for (const mode of [0o777, 0o730]) {
      chmodSync(parent, mode);
      await check(`chmod go-w ${parent}`);
    }
    chmodSync(parent, 0o1777);
    assertEquals(await folder.get("a"), "secret", "in a sticky folder, other users cannot replace the folder");
  },
);

// only root can change the owner of a folder
Deno.test(
  "a folder that belongs to another user is refused with the remedy",
  { ignore: process.getuid?.() !== 0 },
  async () => {
    const path = mkdtempSync(`${tmpdir()}/mcp-tokens-`);
    try {
      const folder = tokenFolder(path);
      await folder.update("a", put("secret"));
      chownSync(path, 65_534, 65_534);
      for (const use of [() => folder.get("a"), () => folder.keys(), () => folder.update("a", put("evil"))]) {
        const { message } = await assertRejects(async () => void await use(), Error);
        assertStringIncludes(message, sentence(path, "chown 0"));
      }
    } finally {
      rmSync(path, { recursive: true });
    }
  },
);

inFolder("a running process holds a lock for as long as it needs", async (path) => {
  const [first, second] = [tokenFolder(path, { deadMs: 2000 }), tokenFolder(path, { deadMs: 2000 })];
  const order: string[] = [];
  const started = Promise.withResolvers<void>();
  const slow = first.update("a", async () => {
    started.resolve();
    // The delay is several times the timeout after which the lock of a dead process is released.
    // Fixed wait: a lock that is held longer than the timeout for locks of dead processes.
    await new Promise((resolve) => setTimeout(resolve, 5000));
    order.push("first");
    return "1";
  });
  await started.promise;
  await second.update("a", (current) => {
    order.push("second");
    return Promise.resolve(`${current}2`);
  });
  await slow;
  assertEquals([order, await first.get("a")], [["first", "second"], "12"]);
});

inFolder("no change is lost when several callers find the lock of a dead process", async (path) => {
  const folders = Array.from({ length: 6 }, () => tokenFolder(path));
  const keys = Array.from({ length: 20 }, (_, at) => `${at}`);
  for (const key of keys) await folders[0].update(key, put(""));
  for (const name of readdirSync(path)) {
    writeFileSync(`${path}/${name}.lock`, crypto.randomUUID());
    utimesSync(`${path}/${name}.lock`, 0, 0);
  }
  const append = (current: string | undefined) => Promise.resolve(`${current}x`);
  await Promise.all(keys.flatMap((key) => folders.map((folder) => folder.update(key, append))));
  const values = await Promise.all(keys.map((key) => folders[0].get(key)));
  assertEquals(values, keys.map(() => "xxxxxx"));
  assertEquals(readdirSync(path).filter((name) => !name.endsWith(".json")), []);
});

inFolder("a process that continues after its lock was taken does not release the next lock", async (path) => {
  const [first, second] = [tokenFolder(path), tokenFolder(path)];
  const [started, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let next: Promise<unknown> | undefined;
  await first.update("a", async () => {
    const lock = `${path}/${readdirSync(path).find((name) => name.endsWith(".lock"))}`;
    utimesSync(lock, 0, 0);
    next = second.update("a", async () => {
      started.resolve();
      await over.promise;
      return "2";
    });
    await started.promise;
    return "1";
  });
  assertEquals(readdirSync(path).filter((name) => name.endsWith(".lock")).length, 1);
  over.resolve();
  await next;
  assertEquals([await first.get("a"), readdirSync(path).filter((name) => name.endsWith(".lock"))], ["2", []]);
});

testProcesses("the lock of a killed process is released", async () => {
  const folder = await Deno.makeTempDir({ prefix: "mcp-tokens-" });
  const holder = `import { tokenFolder } from "${root}src/cli/sign_in/token_folder.ts";
await tokenFolder(${
    JSON.stringify(folder)
  }, { deadMs: 1000 }).update("a", () => { console.log("held"); return new Promise((resolve) => setTimeout(resolve, 60_000)); });`;
  for (const command of [["deno", "run", "-A", "--no-check"], ["bun"]]) {
    const file = await Deno.makeTempFile({ suffix: ".ts" });
    await Deno.writeTextFile(file, holder);
    const [program, ...args] = command;
    const child = new Deno.Command(program, { args: [...args, file], stdout: "piped", stderr: "null" }).spawn();
    const reader = child.stdout.getReader();
    assert(new TextDecoder().decode((await reader.read()).value).includes("held"));
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();
    const locks = readdirSync(folder).filter((name) => name.endsWith(".lock"));
    assertEquals(locks.length, 1);
    // Four processes wait for the lock concurrently. The lock must belong to one process at a time.
    let running = 0;
    await Promise.all([1, 2, 3, 4].map(() =>
      tokenFolder(folder, { deadMs: 1000 }).update("a", async (current) => {
        assertEquals(++running, 1);
        await new Promise((resolve) => setTimeout(resolve));
        running--;
        return `${current ?? ""}x`;
      })
    ));
    await Deno.remove(file);
  }
  assertEquals(await tokenFolder(folder).get("a"), "xxxxxxxx");
  assertEquals(readdirSync(folder).filter((name) => !name.endsWith(".json")), []);
  await Deno.remove(folder, { recursive: true });
});
