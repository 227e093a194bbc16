// The files of clients that `mcp install` writes, byte for byte: a new file, and a file with comments, other members
// and an entry to replace.
import { assertEquals, assertStringIncludes } from "@std/assert";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";
import { root, run } from "../support/processes.ts";
import { runtimes } from "./runtimes.ts";

/** A client, with the texts of its file. */
interface Format {
  readonly client: string;
  /** The name of a file in the project, whose entries contain references to variables instead of secrets. */
  readonly file: string;
  /** A new file with a server that the client starts. COMMAND stands for the command and its arguments. */
  readonly created: string;
  /** An odd file with an entry `s`. */
  readonly before: string;
  /** The odd file after the entry was replaced by a URL. */
  readonly after: string;
  /** Texts to which no entry can be added. */
  readonly invalid: readonly string[];
}

const formats: readonly Format[] = [
  {
    client: "opencode",
    file: "opencode.json",
    created: `{
  "mcp": {
    "s": {
      "type": "local",
      "command": COMMAND,
      "environment": {
        "MY_KEY": "{env:MY_KEY}"
      }
    }
  }
}
`,
    before: `{
\t"$schema": "https://opencode.ai/config.json", // kept
\t/* servers */
\t"mcp": {
\t\t"other": { "type": "local", "command": ["x"], "enabled": false }, // not this one
\t\t"s": { "type": "local", "command": ["old"] }, // comment
\t},
}
`,
    after: `{
\t"$schema": "https://opencode.ai/config.json", // kept
\t/* servers */
\t"mcp": {
\t\t"other": { "type": "local", "command": ["x"], "enabled": false }, // not this one
\t\t"s": {
\t\t\t"type": "remote",
\t\t\t"url": "https://mcp.example.com/mcp",
\t\t\t"headers": {
\t\t\t\t"authorization": "Bearer {env:MY_KEY}"
\t\t\t}
\t\t}, // comment
\t},
}
`,
    invalid: ['{ "mcp": ["s"] }', '{ "mcp": {', "[]"],
  },
  {
    client: "copilot",
    file: "mcp-config.json",
    created: `{
  "mcpServers": {
    "s": {
      "type": "local",
      COMMAND,
      "env": {
        "MY_KEY": "\${MY_KEY}"
      },
      "tools": [
        "*"
      ]
    }
  }
}
`,
    before: '{"mcpServers": {"s": {"type": "local", "command": "old", "tools": []}}, "last": null}',
    after: `{"mcpServers": {"s": {
  "type": "http",
  "url": "https://mcp.example.com/mcp",
  "headers": {
    "authorization": "Bearer \${MY_KEY}"
  },
  "tools": [
    "*"
  ]
}}, "last": null}`,
    invalid: ['{ "mcpServers": "s" }', "null", "{ a }"],
  },
  {
    client: "qwen",
    file: "settings.json",
    created: `{
  "mcpServers": {
    "s": {
      COMMAND,
      "env": {
        "MY_KEY": "\${MY_KEY}"
      }
    }
  }
}
`,
    before: `{
    // the theme
    "ui": { "theme": "x" },
    "mcpServers": {
        "s": {
            "command": "old" // of it
        }
    }
}`,
    after: `{
    // the theme
    "ui": { "theme": "x" },
    "mcpServers": {
        "s": {
            "httpUrl": "https://mcp.example.com/mcp",
            "headers": {
                "authorization": "Bearer \${MY_KEY}"
            }
        }
    }
}`,
    invalid: ['{ "mcpServers": 1 }', "{", '{ "mcpServers": {} } x'],
  },
  {
    client: "amp",
    file: "settings.json",
    created: `{
  "amp.mcpServers": {
    "s": {
      COMMAND,
      "env": {
        "MY_KEY": "\${MY_KEY}"
      }
    }
  }
}
`,
    // A member `amp` with a member `mcpServers` is something else.
    before: `{
  "amp": { "mcpServers": { "s": 1 } },
  "amp.mcpServers": { "s": { "command": "old" } } // servers
}
`,
    after: `{
  "amp": { "mcpServers": { "s": 1 } },
  "amp.mcpServers": { "s": {
    "url": "https://mcp.example.com/mcp",
    "headers": {
      "authorization": "Bearer \${MY_KEY}"
    }
  } } // servers
}
`,
    invalid: ['{ "amp.mcpServers": [] }', '"x"', "{ 'a': 1 }"],
  },
  {
    client: "continue",
    file: "config.yaml",
    created: `name: Local config
version: 1.0.0
schema: v1
mcpServers:
  - name: s
    type: stdio
    COMMAND
    env:
      MY_KEY: \${{ secrets.MY_KEY }}
`,
    before: `# my config
name: mine
models:
  - name: m # kept
    provider: ollama
mcpServers:
  - uses: someone/server
  # about s
  - name: s
    command: old
  - name: S2 # another
    command: x
rules: []
`,
    after: `# my config
name: mine
models:
  - name: m # kept
    provider: ollama
mcpServers:
  - uses: someone/server
  # about s
  - name: s
    type: streamable-http
    url: https://mcp.example.com/mcp
    requestOptions:
      headers:
        authorization: Bearer \${{ secrets.MY_KEY }}
  - name: S2 # another
    command: x
rules: []
`,
    invalid: ["mcpServers: { s: {} }", "mcpServers: [", "- a"],
  },
];

const URL_TARGET = "https://mcp.example.com/mcp";
const HEADER = ["--header", "authorization=Bearer ${MY_KEY}"];

/** Replaces the command and its arguments, which differ by runtime and machine, by COMMAND. */
function hideCommand(text: string): string {
  return text.replaceAll(root, "ROOT/")
    .replace(/"command": \[[^\]]*?\/server\.ts"\n *\]/, '"command": COMMAND')
    .replace(/"command": "(?:deno|bun)",\n *"args": \[[^\]]*?\/server\.ts"\n *\]/, "COMMAND")
    .replace(/command: (?:deno|bun)\n *args:\n(?: *- .*\n)+/, "COMMAND\n");
}

for (const { name: runtime, program } of runtimes) {
  const allow = runtime === "deno" ? ["--allow-none"] : [];

  for (const { client, file, created, before, after, invalid } of formats) {
    testProcesses(`${runtime}: install changes only the entry in a file of ${client}`, async () => {
      const broken = Object.fromEntries(invalid.map((text, i) => [`${i}.${file}`, text]));
      await withFiles({ "server.ts": "", [`odd.${file}`]: before, [`empty.${file}`]: "", ...broken }, async (cwd) => {
        const into = (name: string, ...words: readonly string[]) => {
          const options = ["--client", client, "--file", `${name}.${file}`, "--name", "s", "--no-check"];
          return run([...program, "install", ...words, ...options], { cwd, env: { MY_KEY: "s3cret" } });
        };
        const read = (name: string) => Deno.readTextFile(`${cwd}/${name}.${file}`);
        for (const name of ["new", "empty"]) {
          const { code, stderr } = await into(name, "server.ts", "--env", "MY_KEY", ...allow);
          assertEquals(code, 0, stderr);
          assertEquals(hideCommand(await read(name)), created);
        }

        const { code, stderr } = await into("odd", URL_TARGET, ...HEADER, "--force");
        assertEquals(code, 0, stderr);
        assertEquals(await read("odd"), after);

        // Both runtimes use the same editors, so test the texts that the editors reject only once.
        for (const [i, text] of runtime === "deno" ? invalid.entries() : []) {
          const { code, stderr } = await into(`${i}`, URL_TARGET);
          assertEquals(code, 2, text);
          assertStringIncludes(stderr, sentence(`${cwd}/${i}.${file}`));
          assertEquals(await read(`${i}`), text);
        }
        assertEquals(listNames(cwd).filter((name) => name.endsWith(".bak")), [
          `empty.${file}.bak`,
          `odd.${file}.bak`,
        ]);
      });
    });
  }

  testProcesses(
    `${runtime}: install writes no reference for Cline, because Cline does not expand references`,
    async () => {
      await withFiles({ "server.ts": "" }, async (cwd) => {
        const options = ["--client", "cline", "--file", "cline.json", "--no-check"];
        for (
          const [names, words] of [
            [["authorization", "--file"], [URL_TARGET, ...HEADER]],
            [["MY_KEY", "Cline CLI"], ["server.ts", "--env", "MY_KEY", ...allow]],
          ]
        ) {
          const { code, stderr } = await run([...program, "install", ...words, ...options], {
            cwd,
            env: { MY_KEY: "s3cret" },
          });
          assertEquals(code, 2, stderr);
          assertStringIncludes(stderr, sentence(...names));
        }
        assertEquals(listNames(cwd), ["server.ts"]);
      });
    },
  );
}
