// Arguments that a program would read as code are found in any word and behind any wrapper program.
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { findCodeRisks } from "../../../src/cli/config/code_injection.ts";
import { ARGUMENT, type CodeRisk } from "../../../src/cli/config/command_word.ts";
import { check } from "../../../src/cli/check.ts";
import { readArgs } from "../../../src/cli/args.ts";
import { toFlags } from "../../../src/cli/command.ts";
import { load } from "../../../src/cli/load.ts";
import { withFolder } from "../../support/folder.ts";

/** Checks a command line with quoted words; `X` is an argument, and `?` before a word makes the word optional. */
function findLevel(command: string, stdin = ""): CodeRisk["level"] | "fine" {
  const words = [...command.matchAll(/\?("[^"]*"|\S+)|"[^"]*"|\S+/g)].map(([word, optional]) => ({
    text: (optional ?? word).replace(/^"|"$/g, "").replaceAll("X", ARGUMENT),
    isOptional: optional !== undefined,
  }));
  return findCodeRisks(words, stdin.replaceAll("X", ARGUMENT))[0]?.level ?? "fine";
}

// Command lines with an argument where the program reads code.
const errors = [
  // shells
  "sh -c X",
  "sh -ce X",
  "sh -ec X",
  "sh -c -- X",
  'bash -c -- "echo X"',
  "bash -c -e X",
  "bash -e -c X",
  "bash -o errexit -c X",
  "bash --norc -c X",
  'bash +x -c "ls X"',
  "bash --rcfile X -c ls",
  'bash -lic "ls X"',
  "/bin/bash -c X",
  "/usr/local/bin/bash5 -c X",
  "zsh -cX",
  "dash -X",
  "fish -c X",
  "sh X",
  "sh -- X",
  "sh X.sh",
  'sh -s -c "ls X"',
  "C:\\\\Windows\\\\System32\\\\cmd.exe /c X",
  'cmd /k "dir X"',
  "cmd /cX",
  "cmd /c dir X",
  "powershell -Command X",
  'powershell.exe -NoProfile -c "ls X"',
  "pwsh -EncodedCommand X",
  "pwsh X",
  // languages
  "python3 -cX",
  "python3 -c X",
  'python3 -c "print(X)"',
  'python3.11 -Ic "print(X)"',
  "python -W ignore -c X",
  "python -m X",
  "python X",
  "python -Xdev X",
  "perl -e X",
  'perl -ne "print X"',
  'perl -lane "print X"',
  "perl -MX -e 1",
  "perl -M X -e 1",
  "perl -e 1 -e X",
  'perl -pi.bak -e "s/a/X/" f',
  "perl -pe 1 X",
  'ruby -e "puts X"',
  "ruby -rX -e 1",
  "ruby -ne 1 X",
  "php -r X",
  "php -d X f.php",
  "php -f X",
  "php --run=X",
  "lua -e X",
  "lua -lX f.lua",
  "node -e X",
  "node -pe X",
  "node --eval=X",
  "node --eval X",
  'node --print "X + 1"',
  "node --require X f.js",
  "node --require ./a.js X",
  "node -r X f.js",
  "node --import=data:text/javascript,X f.js",
  "bun -e X",
  "bun run X",
  "bun X",
  "deno eval X",
  'deno eval "console.log(X)"',
  "deno run X",
  "deno run -A X",
  "deno run --allow-read=X f.ts",
  "deno run -c X f.ts",
  "deno run --import-map=X f.ts",
  "tsx -e X",
  'osascript -e "say X"',
  "Rscript -e X",
  "julia -e X",
  "elixir --eval X",
  "emacs --batch --eval X",
  "tclsh X",
  "expect -c X",
  // small languages
  "awk X",
  'awk "{ print X }" f',
  'awk -F : "{ print X }" f',
  "awk -v a=b X",
  "awk -f X",
  "gawk --source X f",
  "gawk -e X f",
  'mawk "BEGIN { X }"',
  "busybox awk X",
  "busybox sh -c X",
  "sed X f",
  'sed "s/a/X/" f',
  "sed -e X f",
  "sed -eX f",
  "sed -ne X f",
  'sed -E "s/X/b/" f',
  'sed -i.file "s/X/b/" f',
  "sed --expression=X f",
  'sed --expression "s/X//" f',
  "sed -f X",
  "sed p f -e X",
  'jq ".X" f',
  "jq X",
  'jq -r ".a | X" f',
  "yq X f",
  "make X",
  "make A=X",
  "make --eval=X",
  "make -f X",
  "bc X",
  // databases
  "sqlite3 db X",
  'sqlite3 db "select X"',
  'sqlite3 -json db "select X"',
  "sqlite3 -separator , db X",
  "sqlite3 -cmd X db",
  "duckdb -c X",
  "psql -c X",
  "psql -cX",
  'psql mydb -c "select X"',
  "psql --command=X",
  'psql --command "select X" mydb',
  "psql -v a=X -f f.sql",
  "psql -f X",
  "mysql -e X",
  'mysql db -e "select X"',
  "mysql -u me -ppass --execute=X",
  "mariadb --init-command X",
  "mongosh --eval X",
  "redis-cli eval X 0",
  'clickhouse-client --query "select X"',
  "clickhouse-client -q X",
  // programs that run their arguments
  "ssh host X",
  "ssh -p 22 host ls X",
  'ssh host -- "ls X"',
  "ssh -o ProxyCommand=X host",
  "ssh -oProxyCommand=X host",
  "ssh -F X host",
  "su -c X",
  'su - root -c "ls X"',
  "su root --command=X",
  "watch X",
  "watch -n 1 ls X",
  'parallel "echo X" ::: a',
  "eval X",
  "script -c X f",
  "flock f -c X",
  "vim -c X f",
  "vim +X f",
  "gdb -ex X f",
  // behind wrapper programs
  "env sh -c X",
  "env A=1 B=2 bash -c X",
  "env -i -u HOME python3 -c X",
  'env -S "sh -c X"',
  "env -S X",
  "env --split-string=X",
  "env X",
  "env LD_PRELOAD=X ls",
  "env PATH=X ls",
  "env NODE_OPTIONS=X node f.js",
  "sudo sh -c X",
  'sudo -u root -- bash -c "X"',
  "sudo -n X",
  "doas -u root python -c X",
  "nice sh -c X",
  "nice -n 10 perl -e X",
  "nice -n10 perl -e X",
  "ionice -c 2 -n 7 awk X",
  "timeout 5 sh -c X",
  "timeout -k 1 -s KILL 5 sh -c X",
  "timeout X sh -c X",
  "timeout 5 X",
  "nohup sh -c X",
  "time -f %e sed X",
  "stdbuf -o L awk X",
  "setsid nohup env A=1 nice -n 5 timeout 9 sh -c X",
  "chroot / sh -c X",
  "strace -e trace=open python3 -c X",
  "xargs sh -c X",
  'xargs -n 1 -P 4 bash -c "echo X"',
  "xargs X",
  "npx X",
  "npx -y -p pkg -c X",
  "bunx X",
  "find . -exec sh -c X ;",
  "find . -name a -execdir sed -e X {} +",
  "find . -exec X {} ;",
  "find . -ok env perl -e X {} ;",
  "find . -exec ls {} ; -exec python -c X ;",
  "fd a --exec sh -c X",
  "docker exec c sh -c X",
  'docker run --rm -v /a:/b image bash -lc "ls X"',
  "kubectl exec pod -- sh -ce X",
  "some-runner --now python3 -c X",
  "some-runner deno eval X",
  // optional words
  "sh ?X -c ls",
  "sh -c ?ls X",
  "sh ?f.sh X",
  "sed ?-n X f",
  "awk ?-F ?: X",
  "timeout 5 ?X ls",
] as const;

for (const command of errors) {
  Deno.test(`code: ${command}`, () => assertEquals(findLevel(command), "error"));
}

for (
  const [command, stdin] of [
    ["sh", "echo X"],
    ["bash -s", "X"],
    ["bash -", "X"],
    ["sudo -u root sh", "X"],
    ["python3", "print(X)"],
    ["python3 -", "X"],
    ["node", "X"],
    ["perl", "X"],
    ["psql mydb", "select X"],
    ["sqlite3 db", "X"],
    ["mysql -u me db", "X"],
    ["ssh host", "X"],
    ["xargs sh -c", "X"],
    ["xargs sh", "X"],
    ['xargs -I{} sh -c "echo {}"', "X"],
    ["xargs -I % python3 -c \"print('%')\"", "X"],
    ['xargs -i bash -c "ls {}"', "X"],
    ["xargs ssh host", "X"],
    ["env A=1 xargs -n 1 awk", "X"],
    ["bc", "X + 1"],
    ["sh ?f.sh", "X"],
  ] as const
) {
  Deno.test(`code from standard input: ${command}`, () => assertEquals(findLevel(command, stdin), "error"));
}

for (
  const [command, stdin = ""] of [
    ["printf %s X"],
    ["printf %sX"],
    ["grep -n -- X docs"],
    ["grep -c X python"],
    ["rg X sh -c"],
    ["ls -l X"],
    ["my-tool X"],
    ["my-tool --name X"],
    ['sh -c "grep -- \\$1 f" sh X'],
    ['bash -euc "ls" -- X'],
    ["sh f.sh X"],
    ["sh -x f.sh -c X"],
    ["/bin/sh -o errexit f.sh X"],
    ["python3 f.py X"],
    ["python3 -m json.tool X"],
    ["python3 -c 1 X"],
    ["python3 -W ignore f.py -c X"],
    ["perl -e 1 X"],
    ["perl f.pl X"],
    ["node f.js X"],
    ["node --conditions dev f.js X"],
    ["deno run -A f.ts X"],
    ["deno run --config deno.json f.ts X"],
    ["bun run f.ts X"],
    ['awk "{ print $1 }" X'],
    ['awk -v a=X "{ print a }" f'],
    ['awk -F X "{ print $1 }" f'],
    ["awk -f f.awk X"],
    ["sed -n 5p X"],
    ["sed -f f.sed X"],
    ["sed -i.bak -e s/a/b/ X"],
    ['jq --arg x X ".[$x]" f'],
    ['jq ".[$x]" --arg x X f'],
    ["jq -r .a X"],
    ["sqlite3 X .tables"],
    ['psql -h X -c "select 1"'],
    ["psql -d X -f f.sql"],
    ["ssh X uptime"],
    ["ssh -p X host uptime"],
    ["env A=X ls"],
    ["sudo -u X ls"],
    ["timeout X ls"],
    ["nice -n X ls"],
    ["xargs ls", "X"],
    ['xargs sh -c "ls \\$@" _', "X"],
    ["python3 f.py", "X"],
    ["sh -c cat", "X"],
    ["psql -f f.sql", "X"],
    ["my-tool", "X"],
    ["wc -w", "X"],
    ["find X -name a"],
    ["find . -name X"],
    ["find . -exec grep X {} ;"],
    ["docker run image X"],
  ] as const
) {
  Deno.test(`not code: ${command}${stdin && " <"}`, () => assertEquals(findLevel(command, stdin), "fine"));
}

for (
  const command of [
    "my-tool --name=X",
    "curl https://example.com/X",
    "sh f.sh --a=X",
    "git log X..main",
    "timeout Xs ls",
  ]
) {
  Deno.test(`possible code: ${command}`, () => assertEquals(findLevel(command), "warning"));
}

Deno.test("code is found behind any chain of wrapper programs", () => {
  const wrappers = [
    "env",
    "env A=1",
    "sudo",
    "sudo -u me --",
    "nice -n 5",
    "timeout 5",
    "timeout -k 1 5",
    "nohup",
    "time",
    "stdbuf -oL",
    "setsid",
    "xargs -n 1",
    "npx -y",
    "strace -f -e trace=all",
    "find . -exec",
  ];
  let state = 3;
  const random = (limit: number) => (state = (state * 48271) % 2147483647) % limit;
  for (const command of errors) {
    if (command.includes("?")) continue;
    for (let i = 0; i < 8; i++) {
      const chain = Array.from({ length: 1 + random(4) }, () => wrappers[random(wrappers.length)]);
      const whole = [...chain, command].join(" ");
      assertEquals(findLevel(whole), "error", whole);
    }
  }
});

Deno.test("any words can be checked, and a command without arguments never has a risk", () => {
  let state = 11;
  const random = (limit: number) => (state = (state * 48271) % 2147483647) % limit;
  const pieces = [
    "sh",
    "-c",
    "--",
    "X",
    "aX",
    "-X",
    "--a=X",
    "python3",
    "-e",
    "find",
    "-exec",
    ";",
    "xargs",
    "-I{}",
    "env",
    "A=X",
    "sed",
    "jq",
    "--arg",
    "ssh",
    "?X",
    "?-c",
    "-",
    "=",
    "psql",
    "awk",
    "-f",
  ];
  for (let i = 0; i < 20_000; i++) {
    const words = Array.from({ length: 1 + random(7) }, () => pieces[random(pieces.length)]);
    findLevel(words.join(" "), random(2) ? "X" : "");
    assertEquals(findLevel(words.join(" ").replaceAll("X", "y")), "fine", words.join(" "));
  }
});

Deno.test("a config file with an argument read as code is rejected with its position, and check warns of possible code", async () => {
  const input = { properties: { a: { type: "string", description: "A" } }, required: ["a"] };
  const toConfig = (run: unknown, more: object = {}) => ({
    tools: { it: { description: "Does it", run, input, ...more } },
  });
  const files = {
    "bad.jsonc": toConfig(["timeout", "5", "sh", "-ce", "echo {{a}}"]),
    "input.jsonc": toConfig(["sh"], { stdin: "echo {{a}}" }),
    "maybe.jsonc": toConfig(["my-tool", "--name={{a}}"]),
    "fine.jsonc": toConfig(["printf", "--", "{{a}}"]),
  };
  await withFolder(files, async (folder) => {
    for (const [file, key] of [["bad.jsonc", "tools.it.run[4]"], ["input.jsonc", "tools.it.stdin"]]) {
      const error = await load(`${folder}/${file}`).then(() => undefined, (error: unknown) => error);
      assert(error instanceof Error);
      assertStringIncludes(error.message, `${key}: the program reads `);
      assertStringIncludes(error.message, "so a call could run anything; ");
    }
    const checkFile = async (file: string, ...flags: string[]) => {
      const { log } = console;
      let printed = "";
      console.log = (text: unknown) => void (printed += text);
      try {
        return {
          code: await check.run(await readArgs([`${folder}/${file}`, ...flags], toFlags(check.options))),
          printed,
        };
      } finally {
        console.log = log;
      }
    };
    const maybe = await checkFile("maybe.jsonc");
    assertStringIncludes(maybe.printed, "warning: tool it: run[1]: an argument is only part of this word; make sure");
    assertEquals([maybe.code, (await checkFile("maybe.jsonc", "--strict")).code], [0, 1]);
    assertStringIncludes((await checkFile("fine.jsonc", "--strict")).printed, "No problems.");
  });
});
