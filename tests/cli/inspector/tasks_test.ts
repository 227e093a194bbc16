// Tasks on the inspector page, in a real browser: status, questions, results and errors.
import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { root } from "../../support/processes.ts";
import { type Opened, programs, test } from "./browser.ts";

const file = "tests/cli/inspector/tasks_server.ts";

async function useTasks(opened: Opened, step: Deno.TestContext["step"]): Promise<void> {
  const { page, panel, choose, press, answer, readResult } = opened;
  const dialog = page.getByRole("dialog");
  const status = panel.locator(".task");
  const title = await page.title();

  await step("a task shows its status, elicits and returns its result", async () => {
    await choose("write");
    await press("Call");
    await dialog.getByText("For whom?").waitFor();
    const text = await status.innerText();
    assertMatch(text, /^Task [\w-]{16,} · input_required · /);
    assertStringIncludes(text, `<b onclick="document.title='broken'">Writing</b>`);
    await dialog.getByLabel("name").fill("Ada");
    await answer("Accept");
    assertStringIncludes(await readResult("Done"), "A letter for Ada");
    assertStringIncludes(await status.innerText(), "completed");
    assertEquals(await page.title(), title);
  });

  await step("a question can be declined, and a task can fail", async () => {
    await press("Call");
    await dialog.waitFor();
    await answer("Decline");
    assertStringIncludes(await readResult("Done"), "decline");
    await choose("fail");
    await press("Call");
    assertStringIncludes(await readResult("Failed"), "No paper");
  });

  await step("Stop cancels the task on the server", async () => {
    await choose("endless");
    await press("Call");
    await status.getByText("working").waitFor();
    await panel.getByRole("button", { name: "Stop" }).click();
    await readResult("Stopped");
    await choose("count");
    await press("Call");
    assertStringIncludes(await readResult("Done"), "1 cancelled");
  });
}

test("the page shows the progress of tasks on its own server", useTasks, { file });

test("the page shows the progress of tasks on a server over stdio", useTasks, {
  command: [...programs.deno, "inspect", "--page", "--port", "0", "--", ...programs.deno, root + file],
  hasPort: true,
});
