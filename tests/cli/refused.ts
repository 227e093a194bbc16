// Assertions about commands that refuse what was typed or what is in a file.
import { assertEquals, assertStringIncludes } from "@std/assert";
import type { Finished } from "../support/processes.ts";

/** Asserts that a command exits with code 2, prints all messages as errors, and prints no result. */
export async function assertRefused(command: Promise<Finished>, ...messages: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await command;
  assertEquals({ code, stdout }, { code: 2, stdout: "" }, stderr);
  for (const message of messages) assertStringIncludes(stderr, message);
}
