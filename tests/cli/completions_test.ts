// Shell completion of a typed line. Shells that are not installed are skipped.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { isNotDeno, listNames, testProcesses } from "../support/command_line.ts";
import { root, run } from "../support/processes.ts";
import { sentence } from "../support/messages.ts";
import { assertRefused } from "./refused.ts";

function isMissing(shell: string): boolean {
  if (isNotDeno) return true;
  try {
    return !new Deno.Command(shell, { args: ["-c", "true"] }).outputSync().success;
  } catch {
    return true;
  }
}

// A name that a shell must not expand.
const file = "my $(touch hacked)'s.jsonc";

/** Typed arguments with the completion of the last argument, which is `undefined` if there is no completion. */
const typed: readonly (readonly [words: readonly string[], completed?: string])[] = [
  [["doct"], "doctor"],
  [["install", "--cl"], "--client"],
  [["install", "--client", "cu"], "cursor"],
  [["install", "--client=cu"], "cursor"],
  [["server.ts", "--insp"], "--inspect"],
  [["completions", "z"], "zsh"],
  [["check", "my"], file],
  [["serve", "--port", ""]],
];

/** Writes the completion script into a folder with a file, runs a shell in this folder, and returns the output. */
async function complete(shell: string, toCommand: (script: string) => readonly string[]): Promise<string> {
  const cwd = await Deno.makeTempDir({ prefix: "mcp-completions-" });
  try {
    const { code, stdout, stderr } = await run(["deno", "run", "--allow-read", `${root}mod.ts`, "completions", shell], {
      cwd,
    });
    assertEquals({ code, stderr }, { code: 0, stderr: "" });
    await Deno.writeTextFile(`${cwd}/script`, stdout);
    await Deno.writeTextFile(`${cwd}/${file}`, "");
    const finished = await run(toCommand("./script"), { cwd });
    const names = listNames(cwd);
    assertEquals(names, [file, "script"]);
    return finished.stdout;
  } finally {
    await Deno.remove(cwd, { recursive: true });
  }
}

Deno.test("bash completes commands, flags, values and files", { ignore: isMissing("bash") }, async () => {
  // bash splits words at "=".
  const lines = typed.map(([words]) => {
    const parts = ["mcp", ...words.flatMap((word) => word.split(/(=)/))].map((word) => `'${word}'`);
    return `COMP_WORDS=(${parts.join(" ")}); COMP_CWORD=${parts.length - 1}; _mcp; printf '<%s>' "\${COMPREPLY[*]}"`;
  });
  const output = await complete(
    "bash",
    (script) => ["bash", "-c", `. ${script}\n${lines.join("\n")}\ncomplete -p mcp`],
  );
  assertEquals(output, typed.map(([, found = ""]) => `<${found}>`).join("") + "complete -F _mcp mcp\n");
});

Deno.test("fish completes commands, flags, values and files", { ignore: isMissing("fish") }, async () => {
  const lines = typed.map(([words]) => `echo "<"(complete -C 'mcp ${words.join(" ")}' | string split -f 1 \\t)">"`);
  const output = await complete("fish", (script) => ["fish", "-N", "-c", `. ${script}\n${lines.join("\n")}`]);
  const expected = typed.flatMap(([words, found]) => {
    if (found === undefined) return [];
    const flag = /^--\w+=/.exec(words.at(-1) ?? "")?.[0] ?? "";
    return [`<${flag}${found}>`];
  });
  assertEquals(output.trim().split("\n"), expected);
});

Deno.test("zsh completes commands, flags, values and files", { ignore: isMissing("zsh") }, async () => {
  // zsh runs in a pseudoterminal. After Tab, Ctrl-O prints the line.
  const lines = typed.filter(([, found]) => found).map(([words]) =>
    `zpty -wn z $'mcp ${words.join(" ")}\\t\\x0f'; zpty -r z told '*>>>'; print -r -- "\${told#*<<<}"`
  );
  const program = (script: string) =>
    `zmodload zsh/zpty
      zpty z zsh -f -i
      zpty -w z 'PS1= ; unsetopt zle_bracketed_paste prompt_cr; autoload -U compinit; compinit -D -u; . ${script}'
      zpty -w z 'show() { print -rn -- "<<<$BUFFER>>>"; BUFFER= }; zle -N show; bindkey "^O" show; echo rea"dy"'
      zpty -r z told '*ready*'
      ${lines.join("\n")}
      zpty -d z`;
  const output = await complete("zsh", (script) => ["zsh", "-f", "-c", program(script)]);
  const shown = output.trim().split("\n").map((line) => line.replace(/[ =]*>>>\r?$/, "").replaceAll("\\", ""));
  const expected = typed.flatMap(([words, found]) => {
    if (found === undefined) return [];
    const flag = /^--\w+=/.exec(words.at(-1) ?? "")?.[0] ?? "";
    return [["mcp", ...words.slice(0, -1), flag + found].join(" ")];
  });
  assertEquals(shown, expected);
});

testProcesses("completions cover every command and any program name, and unknown shells are rejected", async () => {
  const program = ["bun", `${root}mod.ts`];
  const { stdout: help } = await run([...program, "--help"]);
  const list = help.split("\n\n").find((section) => /^ {2}serve {2}/m.test(section)) ?? "";
  const { stdout } = await run([...program, "completions", "bash", "--name", "my-mcp"]);
  assertStringIncludes(stdout, "complete -F _my_mcp my-mcp\n");
  const names = [...list.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name);
  assertEquals(names.length, 19);
  for (const name of names) assert(stdout.includes(`    ${name}) flags=`), name);
  for (
    const [words, message] of [
      [[], sentence("bash, zsh, fish")],
      [["tcsh"], sentence("tcsh", "bash, zsh, fish")],
      [["bash", "--name", "a b;rm"], sentence("a b;rm")],
    ] as const
  ) await assertRefused(run([...program, "completions", ...words]), message);
});
