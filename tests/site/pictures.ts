// Makes the pictures of the documentation again: screenshots of the inspector in Chromium, and a recording of
// examples/cluster, in which an instance is killed and its task continues. Needs Chromium, Redis, `script` and Bun. Run
// `deno task docs:pictures`.
import { type Frame, shortenPauses, toAnimation } from "./terminal.ts";
import { launchBrowser } from "../support/chromium.ts";
import { until } from "../support/behaviour.ts";
import { findFreePort, root, start } from "../support/processes.ts";

/** A screenshot of the inspector after a call. */
interface Screenshot {
  readonly path: string;
  /** The server file. */
  readonly file: string;
  readonly tool: string;
  /** The texts of the form, by field. */
  readonly input: Readonly<Record<string, string>>;
  readonly width: number;
  readonly height: number;
  /** Whether the messages of the app are unfolded. */
  readonly hasApp?: boolean;
}

const SCREENSHOTS: readonly Screenshot[] = [
  {
    path: "docs/guides/inspector.png",
    file: "examples/notes.ts",
    tool: "search",
    input: { text: "milk" },
    width: 1100,
    height: 546,
  },
  {
    path: "docs/guides/apps.png",
    file: "examples/clock/server.ts",
    tool: "show_time",
    input: { zone: "Asia/Tokyo" },
    width: 1320,
    height: 820,
    hasApp: true,
  },
];

async function takeScreenshot({ path, file, tool, input, width, height, hasApp }: Screenshot): Promise<void> {
  const command = ["deno", "run", "-A", `${root}mod.ts`, "serve", root + file, "--http", "--inspect", "--port", "0"];
  await using running = await start(command);
  const [, url] = await running.waitFor(/^ {2}(http:\S+#\S+)/m);
  await using browser = await launchBrowser(width);
  const { page } = browser;
  await page.setViewportSize({ width, height });
  await page.goto(url);
  await page.getByText("Listening", { exact: true }).first().waitFor();
  const panel = page.locator("[role=tabpanel]:visible");
  await panel.locator(".item").filter({ has: page.getByText(tool, { exact: true }) }).click();
  for (const [name, text] of Object.entries(input)) await panel.getByLabel(name).first().fill(text);
  await page.evaluate("document.activeElement?.blur()");
  await panel.getByRole("button", { name: "Call", exact: true }).click();
  await panel.getByText("Done", { exact: true }).first().waitFor();
  if (hasApp) {
    const frame = page.frameLocator("iframe").frameLocator("iframe");
    await frame.getByRole("button", { name: "Ask the server" }).click();
    await panel.getByText("Messages of the app").click();
    await panel.getByText("tools/call").first().waitFor();
  }
  // Filling in the form has scrolled the panel.
  await page.evaluate("document.querySelectorAll('*').forEach((element) => element.scrollTop = 0)");
  await page.screenshot({ path: root + path });
}

/** Returns the lines that a terminal shows after a text, in which `\r` returns to the beginning of the line. */
function toLines(text: string): readonly string[] {
  // deno-lint-ignore no-control-regex
  return text.replace(/\x1b\[K/g, "").trimEnd().split(/\r?\n/).map((line) => line.split("\r").at(-1) ?? "");
}

/** Records a call of a task on three instances. The instance that has ordered two items is killed. */
async function recordCluster(): Promise<readonly Frame[]> {
  const folder = await Deno.makeTempDir();
  const port = findFreePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  await using cluster = await start(["deno", "run", "-A", "examples/cluster/main.ts", `${port}`]);
  const isServed = () => fetch(url).then((response) => response.text().then(() => true), () => false);
  await until(isServed, "the proxy");
  const call = [Deno.execPath(), "run", "-A", `${root}mod.ts`, "call", url];
  for (const item of ["milk", "bread", "tea", "rice"]) {
    const adding = await start([...call, "add", `item=${item}`, `key=${item}`]);
    await adding.finished;
  }
  const typed = "$ mcp call http://127.0.0.1:8000/mcp order";
  const begun = performance.now();
  const frames: Frame[] = [{ at: 0, lines: [typed] }];
  let above: readonly string[] = [typed];
  let text = "";
  const add = () => frames.push({ at: Math.round(performance.now() - begun), lines: [...above, ...toLines(text)] });
  const child = new Deno.Command("script", {
    args: ["-qefc", [...call, "order"].join(" "), `${folder}/typescript`],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += part;
    add();
    const [, instance] = /tea, on (instance \d on \w+)/.exec(text) ?? [];
    if (!instance || above.length > 1) continue;
    const pid = await findInstance(cluster.pid, instance);
    Deno.kill(pid, "SIGKILL");
    above = [
      ...toLines(text),
      "",
      `# in another terminal, the process of ${instance} is killed`,
      `$ kill -9 ${pid}`,
      "",
    ];
    above = [typed, ...above];
    text = "";
    add();
  }
  await child.status;
  cluster.kill("SIGINT"); // Disposing kills the example, which then could not stop its instances.
  await cluster.finished;
  await Deno.remove(folder, { recursive: true });
  return frames;
}

/** Returns the process id of an instance that a process has started. */
async function findInstance(parent: number, instance: string): Promise<number> {
  const { stdout } = await new Deno.Command("pgrep", { args: ["-P", `${parent}`] }).output();
  for (const pid of new TextDecoder().decode(stdout).split("\n").filter(Boolean)) {
    const variables = await Deno.readTextFile(`/proc/${pid}/environ`).catch(() => "");
    if (variables.split("\0").includes(`INSTANCE=${instance}`)) return Number(pid);
  }
  throw new Error(`Cannot find the process of ${instance}: the example does not set INSTANCE any more`);
}

if (import.meta.main) {
  for (const screenshot of SCREENSHOTS) await takeScreenshot(screenshot);
  const title =
    "A task on three instances: the instance that runs the task is killed, and another instance continues it";
  const frames = shortenPauses(await recordCluster(), 3000);
  await Deno.writeTextFile(`${root}docs/guides/resumed-task.svg`, toAnimation(frames, title));
}
