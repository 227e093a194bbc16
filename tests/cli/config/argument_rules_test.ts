// Command arguments: each argument stays one word, and cannot become an option, an option's value, or code.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { type CommandWord, findViolation, type RuleViolation } from "../../../src/cli/config/argument_rules.ts";
import { check } from "../../../src/cli/check.ts";
import { readArgs } from "../../../src/cli/args.ts";
import { toFlags } from "../../../src/cli/command.ts";
import { load } from "../../../src/cli/load.ts";
import { system, toOutcome, withFolder, withServer } from "../folder.ts";
import { sentence } from "../../support/messages.ts";

/**
 * Checks a command line, in which words can be quoted. `X` is a path or a listed value, `T` is any text, `N` a number, `S`
 * a number that can be negative, and `U` any text that the config file names in `unsafe`; `?` before a word makes the word
 * optional.
 */
function find(command: string, stdin = ""): RuleViolation | undefined {
  const words = [...command.matchAll(/\?("[^"]*"|\S+)|"[^"]*"|\S+/g)].map(([word, optional], i): CommandWord => {
    const text = (optional ?? word).replace(/^"|"$/g, "");
    const condition = optional === undefined ? undefined : `word ${i}`;
    const [kind] = /X/.exec(text) ?? /^[TNS]$|U/.exec(text) ?? [];
    if (kind === undefined) return { text, condition };
    const argument = {
      name: kind,
      isPartial: text !== kind,
      isText: kind === "T" || kind === "U",
      isSigned: kind !== "X" && kind !== "N",
      isUnsafe: kind === "U",
    };
    return { argument, condition };
  });
  return findViolation(words, { inputArgument: stdin.includes("X") ? "X" : undefined });
}

const isRefused = (command: string, stdin?: string) => find(command, stdin) !== undefined;

// Command lines that pass an argument in a word that the program interprets as code.
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
  // languages of small tools
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
  // programs behind wrapper programs
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
  Deno.test(`an argument is refused as code: ${command}`, () => assert(isRefused(command)));
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
  Deno.test(`an argument on standard input is refused as code: ${command}`, () => assert(isRefused(command, stdin)));
}

// Commands that are not in a table of programs.
for (
  const command of [
    // The argument is part of a word.
    "my-tool --name=X",
    "curl https://example.com/X",
    "git log X..main",
    "tail -nX f",
    "my-tool a:X",
    "grep -- aX f",
    // The program is a copy or variant of a listed program, under another name.
    "/usr/bin/env X",
    "SH X",
    "Bash.EXE X",
    "C:\\\\tools\\\\PYTHON.exe X",
    "python3.12 X",
    "python3.12t X",
    "perl5.36-x86_64-linux-gnu X",
    "busybox sh X",
    "busybox X",
    "gawk X",
    "gsed X",
    "gxargs X",
    "build.bat X",
    "build.CMD X",
    "some-runner /bin/sh X",
    "some-runner -- sh X",
    "docker run image python3 X",
    // A number that can be negative may be read as an option.
    "my-tool S",
    "git log -n S",
    "head -n S -- X",
    // Numbers are refused too, because some programs interpret each word as code.
    "sh N",
    "find . -maxdepth N",
    // The word before the argument is not a script file, although it looks like a path.
    "sh ?./a.sh X",
    "bash --rcfile ./a.sh X",
    "bash --rcfile ./a.sh -c -- X",
    "bash -o ./a -c -- X",
    "node --require ./a.js X",
    "node -r ./a.js X",
    "bash -c ./a.sh X",
    "deno run -c ?x f.ts X",
    "bun x ./node_modules/.bin/tsx X",
    "bash /usr/bin/perl X",
    "ssh host.example ./a.sh X",
    "sqlite3 a.db X",
    "vim a.txt X",
    "watch ./a.sh X",
    "xargs ./a.sh X",
    "env python3 f.py X",
    // These commands also run files that follow as arguments.
    "deno test --allow-read ./a_test.ts X",
    "deno -q test ./a_test.ts X",
    "deno bench ./a.ts X",
    "deno install ./a.ts X",
    "bun test ./a.test.ts X",
    "node inspect ./a.js X",
    "deno --log-level debug test ./a.ts X",
    "sudo deno test ./a.ts X",
    // These programs run the program or file that the argument names.
    "socat - X",
    "tmux new X",
    "screen X",
    "java X",
    "java -cp X",
    "dotnet X",
    "npm exec X",
    "npm install X",
    "uv run X",
    "go run X",
    "pkexec X",
  ]
) {
  Deno.test(`a command is refused: ${command}`, () => assert(isRefused(command)));
}

for (
  const [command, stdin = ""] of [
    ["git log -n N"],
    ["git log -n N ?-- ?X"],
    ["head -n N -- X"],
    ["printf %s X"],
    ["grep -n -- X docs"],
    ["grep -n N -- X docs"],
    ["ls -l -- X"],
    ["my-tool X"],
    ["my-tool X Y -v"],
    ["rg -- X sh -c"],
    ["my-tool --all=no -- X"],
    ["sh ./f.sh X"],
    ["sh -- ./f.sh X"],
    ["/bin/sh f.sh -v -- X"],
    ["python3 f.py X"],
    ["python3.12 ./bin/f X"],
    ["node f.js X"],
    ["node --no-warnings f.js X"],
    ["deno run -A f.ts X"],
    ["deno run --allow-read=. --config=deno.json f.ts X"],
    ["bun run ./f.ts X"],
    ["some-runner -- sh ./f.sh X"],
    ["./find-notes.sh X"],
    ["./2 X"],
    ["docker run image X"],
    ["docker exec X ls"],
    ["my-tool more X"],
    ["python3 f.py", "X"],
    ["perl -I lib ./a.pl X"],
    ["deno serve --allow-net ./a.ts X"],
    ["java -jar app.jar X"],
    ["dotnet app.dll X"],
    ["poetry run python ./a.py X"],
    ["my-tool", "X"],
    ["wc -w", "X"],
    ["cat -", "X"],
    // The config file allows any text for these arguments.
    ["wc -w -- U"],
    ["sh -c U"],
    ["git -c a=U status"],
    ["kubectl exec pod -- U X"],
  ] as const
) {
  Deno.test(`a command is permitted: ${command}${stdin && " <"}`, () => assertEquals(find(command, stdin), undefined));
}

// Free text names files, hosts, options and code, wherever it stands and whatever the program is.
for (
  const command of [
    "wc -w -- T",
    "my-tool T",
    "cat -- T",
    "cp -- T notes",
    "kubectl exec pod -- T",
    "docker exec pod T",
    "nc T 80",
    "curl -- T",
    "git log -- T",
    "git clone --depth N -- T X",
    "git -c T status",
    "tar -I T -xf a",
    "rsync -e T a b",
    "rg --pre T a",
    "man -P T ls",
    "gh repo view T",
    "some-tool -- -c T",
    "git -c ?a T",
    "git ?-c T",
    "./f.sh T",
    "sh ./f.sh T",
    "printf %s T",
    "echo ?T",
  ]
) {
  Deno.test(`free text is refused: ${command}`, () => assert(isRefused(command)));
}

Deno.test("code is found behind any number of nested wrapper programs", () => {
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
      assert(isRefused(whole), whole);
    }
  }
});

Deno.test("the check accepts any list of words, and reports no violation for a command without arguments", () => {
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
    find(words.join(" "), random(2) ? "X" : "");
    assertEquals(find(words.join(" ").replaceAll("X", "y")), undefined, words.join(" "));
  }
});

const text = { type: "string" };
const withTool = (tool: object, properties: Record<string, unknown> = { a: text }) => ({
  "mcp.jsonc": {
    tools: { it: { description: "Does it", input: { properties, required: Object.keys(properties) }, ...tool } },
  },
});

/** Commands that break a rule, with the position of the error and the names in its message. */
const rejected: readonly {
  readonly run: readonly string[];
  readonly stdin?: string;
  readonly properties?: Record<string, unknown>;
  readonly key: string;
  readonly names: readonly string[];
}[] = [
  { run: ["wc", "-w", "--", "{{a}}"], key: "run[3]", names: [" a ", "enum", '"format": "path"'] },
  { run: ["docker", "exec", "pod", "{{a}}"], key: "run[3]", names: [" a ", "enum", '"format": "path"'] },
  { run: ["my-tool", "--name={{a}}"], key: "run[1]", names: [" a "] },
  { run: ["my-tool", "{{b}}-{{a}}"], properties: { a: text, b: { enum: ["x"] } }, key: "run[1]", names: [" b "] },
  { run: ["python3", "{{a}}"], properties: { a: { enum: ["x"] } }, key: "run[1]", names: ["python"] },
  { run: ["sqlite3", "notes.db", "{{a}}"], properties: { a: { enum: ["x"] } }, key: "run[2]", names: ["sqlite"] },
  { run: ["sh", "{{a}}"], properties: { a: { type: "string", format: "path" } }, key: "run[1]", names: ["sh "] },
  { run: ["sh"], stdin: "echo {{a}}", key: "stdin", names: ["sh "] },
  { run: ["my-tool"], stdin: '{"role":"guest","name":"{{a}}"}', key: "stdin", names: [" a "] },
  { run: ["my-tool"], stdin: ' ["{{a}}"]', key: "stdin", names: [" a "] },
  { run: ["x"], key: "env[0]", names: [] },
  // These schemas allow any text.
  ...[
    {},
    { type: ["number", "string"] },
    { anyOf: [{ type: "number", minimum: 0 }] },
    { type: "array", items: { type: "string" } },
    { type: "array", items: { type: "number", minimum: 0 }, prefixItems: [{ type: "string" }] },
    { type: "array" },
    { type: "array", items: { type: ["array"], items: { type: "string", format: "path" } } },
    { type: "object" },
    { $ref: "#", enum: ["a"] },
    { type: "string", pattern: "^a$" },
    { type: "string", format: "uuid" },
    { format: "path" },
    { type: ["string", "array"], format: "path" },
    { type: "array", format: "path", items: { type: "string" } },
  ].map((a) => ({ run: ["x", "-n", "{{a}}"], properties: { a }, key: "run[2]", names: [" a ", '"format": "path"'] })),
  // These numbers can be negative.
  ...[
    { type: "integer" },
    { type: "number", minimum: -1 },
    { type: "integer", maximum: 5 },
    { type: ["integer", "null"], maximum: 5 },
    { type: "array", items: { type: "number", exclusiveMinimum: -1 } },
  ].map((a) => ({ run: ["x", "-n", "{{a}}"], properties: { a }, key: "run[2]", names: [" a ", '"minimum": 0'] })),
];

for (const { run, stdin, properties, key, names } of rejected) {
  const name = JSON.stringify(stdin ?? run) + JSON.stringify(properties?.a ?? text);
  Deno.test(`a command is rejected with its position and a remedy, unless the command is marked unsafe: ${name}`, async () => {
    const env = key.startsWith("env") ? ["A={{a}}"] : undefined;
    await withFolder(withTool({ run, stdin, env }, properties), async (folder) => {
      const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      const remedy = env ? [] : ['"unsafe": ["'];
      assertStringIncludes(error.message, sentence(`tools.it.${key}: `, ...names, ...remedy));
    });
    if (env) return;
    for (const unsafe of [true, Object.keys(properties ?? { a: text })]) {
      await withFolder(withTool({ run, stdin, unsafe }, properties), async (folder) => {
        const { server } = await load(`${folder}/mcp.jsonc`);
        await server.close();
      });
    }
    for (const unsafe of [false, []]) {
      await withFolder(withTool({ run, stdin, unsafe }, properties), async (folder) => {
        await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      });
    }
  });
}

Deno.test("an argument whose schema has members beside a `$ref` counts as a text", async () => {
  const input = { $ref: "#/$defs/any", $defs: { any: {} }, properties: { a: { type: "integer" } }, required: ["a"] };
  await withFolder(withTool({ run: ["git", "-c", "{{a}}"], input }), async (folder) => {
    const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
    assertStringIncludes(error.message, sentence("tools.it.run[2]: ", " a "));
  });
});

Deno.test("unsafe names arguments of the tool", async () => {
  await withFolder(withTool({ run: ["my-tool", "{{a}}"], unsafe: ["b"] }), async (folder) => {
    const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
    assertStringIncludes(error.message, sentence("tools.it.unsafe[0]: ", "b "));
  });
  // The rules hold for the other arguments.
  const properties = { a: text, b: text };
  await withFolder(withTool({ run: ["my-tool", "{{a}}", "{{b}}"], unsafe: ["a"] }, properties), async (folder) => {
    const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
    assertStringIncludes(error.message, sentence("tools.it.run[2]: ", " b "));
  });
  await withFolder(withTool({ run: ["my-tool", "{{a}}={{b}}"], unsafe: ["a"] }, properties), async (folder) => {
    const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
    assertStringIncludes(error.message, sentence("tools.it.run[1]: ", " b "));
  });
});

Deno.test("a number, a boolean or a listed value can follow an option, and a listed value can begin with a dash", async () => {
  for (
    const [a, value] of [
      [{ type: "integer", minimum: 0 }, 3],
      [{ type: "number", exclusiveMinimum: 0 }, 0.5],
      [{ type: "boolean" }, true],
      [{ enum: ["-x", "y"] }, "-x"],
      [{ const: "-x" }, "-x"],
      [{ enum: [-1, 1] }, -1],
      [{ type: "array", items: { type: "number", minimum: 0 } }, [1, 2]],
      [{ type: ["integer", "null"], minimum: 0 }, null],
    ] as const
  ) {
    await withServer(withTool({ run: ["printf", "[%s]", "[-n]", "{{a}}"] }, { a }), async (client) => {
      const { text } = toOutcome(await client.callTool("it", { a: value }));
      assertEquals(text, `[[-n]]${[value].flat().map((each) => `[${each}]`).join("")}`);
    });
  }
});

Deno.test("a text can begin with a dash only directly after --, and not after a program that follows --", async () => {
  const unsafe = ["a"];
  await withServer(withTool({ run: ["printf", "--", "{{a}}"], unsafe }), async (client) => {
    assertEquals(toOutcome(await client.callTool("it", { a: "-x" })).text, "-x");
  });
  await withServer(withTool({ run: ["printf", "[%s]", "--", "tar", "{{a}}"], unsafe }), async (client) => {
    const { text, isError } = toOutcome(await client.callTool("it", { a: "--checkpoint-action=exec=sh" }));
    assert(isError);
    assertStringIncludes(text, sentence("printf", "a ", '"-"'));
  });
  // An option can take the two dashes as its value. For example, `tar -I -- …` runs a program named "--", and
  // interprets the following words as options.
  for (const option of ["-I", "--file", "-cf"]) {
    await withServer(withTool({ run: ["printf", "[%s]", option, "--", "{{a}}"], unsafe }), async (client) => {
      const { text, isError } = toOutcome(await client.callTool("it", { a: "--checkpoint-action=exec=sh" }));
      assert(isError);
      assertStringIncludes(text, sentence("printf", "a ", '"-"'));
      assertEquals(toOutcome(await client.callTool("it", { a: "x" })).text, `[${option}][--][x]`);
    });
  }
  for (const before of [["--file=b"], ["-n", "--"]]) {
    await withServer(withTool({ run: ["printf", "[%s]", ...before, "--", "{{a}}"], unsafe }), async (client) => {
      assertStringIncludes(toOutcome(await client.callTool("it", { a: "-x" })).text, "[-x]");
    });
  }
  // The two dashes are optional, so a call can omit them.
  const optional = withTool({ run: ["printf", "[%s]", { if: "b", words: ["--"] }, "{{a}}"], unsafe }, {
    a: text,
    b: { type: "boolean" },
  });
  await withServer(optional, async (client) => {
    assert(toOutcome(await client.callTool("it", { a: "-x", b: false })).isError);
    assertEquals(toOutcome(await client.callTool("it", { a: "-x", b: true })).text, "[--][-x]");
  });
});

Deno.test("a program is recognized by the target of its symbolic link", async () => {
  await withFolder(
    { "mcp.jsonc": withTool({ run: ["./tool", "{{a}}"] }, { a: { enum: ["x"] } })["mcp.jsonc"] },
    async (folder) => {
      await system("ln", "-s", "/bin/sh", `${folder}/tool`);
      const error = await assertRejects(() => load(`${folder}/mcp.jsonc`), Error);
      const [shell = ""] = (await system("realpath", "/bin/sh")).split("/").slice(-1);
      assertStringIncludes(error.message.replace(` ${shell} `, " sh "), sentence("tools.it.run[1]: ", " sh "));
    },
  );
});

Deno.test("check reports a command that breaks a rule", async () => {
  const checkFile = async (folder: string) =>
    await check.run(await readArgs([`${folder}/mcp.jsonc`], toFlags(check.options)));
  await withFolder(withTool({ run: ["tar", "-I", "{{a}}"] }), async (folder) => {
    const error = await assertRejects(() => checkFile(folder), Error);
    assertStringIncludes(error.message, sentence("tools.it.run[2]: ", " a "));
  });
  const { log } = console;
  let printed = "";
  console.log = (line: unknown) => void (printed += `${line}\n`);
  try {
    await withFolder(
      withTool({ run: ["git", "log", "-n", "{{a}}"] }, {
        a: { type: "integer", minimum: 0, description: "The number" },
      }),
      async (folder) => assertEquals(await checkFile(folder), 0),
    );
  } finally {
    console.log = log;
  }
  assertEquals(printed.trimEnd().split("\n").at(-1), sentence());
});
