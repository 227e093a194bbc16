// The files of clients that `mcp install` writes, byte for byte: a new file, and a file with comments, other members
// and an entry to replace. The tests plan and write the entries in this process, because `install_test.ts` runs the
// command for each client.
import { assertEquals, assertRejects } from "@std/assert";
import { readArgs } from "../../src/cli/args.ts";
import { CliError } from "../../src/cli/cli_error.ts";
import { toFlags } from "../../src/cli/command.ts";
import { install } from "../../src/cli/install.ts";
import { clients } from "../../src/cli/install/clients.ts";
import { prepareChange, writeChange } from "../../src/cli/install/config_file.ts";
import { planHttp } from "../../src/cli/install/http_plan.ts";
import type { Destination, InstallPlan } from "../../src/cli/install/plan.ts";
import { planStdio } from "../../src/cli/install/stdio_plan.ts";
import { listNames, testProcesses, withFiles } from "../support/command_line.ts";
import { sentence } from "../support/messages.ts";

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

/** The beginning of a YAML file with comments and other members, up to an entry. */
const ODD_YAML = `# my config
name: mine
models:
  - name: m # kept
    provider: ollama
mcpServers:
  - uses: someone/server
  # about s
`;

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
        "HOME": "{env:HOME}"
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
\t\t\t\t"authorization": "Bearer {env:HOME}"
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
        "HOME": "\${HOME}"
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
    "authorization": "Bearer \${HOME}"
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
        "HOME": "\${HOME}"
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
                "authorization": "Bearer \${HOME}"
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
        "HOME": "\${HOME}"
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
      "authorization": "Bearer \${HOME}"
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
      HOME: \${{ secrets.HOME }}
`,
    before: `${ODD_YAML}  - name: s
    command: old
  - name: S2 # another
    command: x
rules: []
`,
    after: `${ODD_YAML}  - name: s
    type: streamable-http
    url: https://mcp.example.com/mcp
    requestOptions:
      headers:
        authorization: Bearer \${{ secrets.HOME }}
  - name: S2 # another
    command: x
rules: []
`,
    invalid: ["mcpServers: { s: {} }", "mcpServers: [", "- a"],
  },
];

// HOME stands for a variable with a secret. All environments contain it, and tests must not change the environment,
// because other tests run in this process.
const LOCAL_OPTIONS = ["--env", "HOME", "--allow-none"];
const REMOTE = ["https://mcp.example.com/mcp", "--header", "authorization=Bearer ${HOME}"];

/** Replaces the command and its arguments, which differ by machine, by COMMAND. */
function hideCommand(text: string): string {
  return text
    .replace(/"command": \[[^\]]*?\/server\.ts"\n *\]/, '"command": COMMAND')
    .replace(/"command": "deno",\n *"args": \[[^\]]*?\/server\.ts"\n *\]/, "COMMAND")
    .replace(/command: deno\n *args:\n(?: *- .*\n)+/, "COMMAND\n");
}

/** Returns a destination in a project, whose files other users can read. */
function toDestination(name: string, file: string): Destination {
  const client = clients.find((each) => each.name === name);
  if (!client) throw new Error(`There is no client ${name}`);
  return { client, file, isShared: true };
}

async function plan(words: readonly string[], destination: Destination): Promise<InstallPlan> {
  const [target] = words;
  const args = await readArgs(words, toFlags(install.options));
  return target.startsWith("https:") ? planHttp(target, destination, args) : await planStdio(target, destination, args);
}

for (const { client, file, created, before, after, invalid } of formats) {
  testProcesses(`install changes only the entry in a file of ${client}`, async () => {
    const broken = Object.fromEntries(invalid.map((text, i) => [`${i}.${file}`, text]));
    await withFiles({ "server.ts": "", [`odd.${file}`]: before, [`empty.${file}`]: "", ...broken }, async (cwd) => {
      const into = async (name: string, words: readonly string[]) => {
        const destination = toDestination(client, `${cwd}/${name}.${file}`);
        const planned = await plan(words, destination);
        const change = { name: "s", entry: planned.toEntry("s"), mayReplace: true };
        await writeChange(await prepareChange(destination, change));
      };
      const read = (name: string) => Deno.readTextFile(`${cwd}/${name}.${file}`);
      for (const name of ["new", "empty"]) {
        await into(name, [`${cwd}/server.ts`, ...LOCAL_OPTIONS]);
        assertEquals(hideCommand(await read(name)), created);
      }

      await into("odd", REMOTE);
      assertEquals(await read("odd"), after);

      for (const [i, text] of invalid.entries()) {
        await assertRejects(() => into(`${i}`, REMOTE), CliError, sentence(`${cwd}/${i}.${file}`), text);
        assertEquals(await read(`${i}`), text);
      }
      assertEquals(listNames(cwd).filter((name) => name.endsWith(".bak")), [`empty.${file}.bak`, `odd.${file}.bak`]);
    });
  });
}

testProcesses("install writes no reference for Cline, because Cline does not expand references", async () => {
  await withFiles({ "server.ts": "" }, async (cwd) => {
    const destination = toDestination("cline", `${cwd}/cline.json`);
    await assertRejects(() => plan(REMOTE, destination), CliError, sentence("authorization", "--file"));
    const local = [`${cwd}/server.ts`, ...LOCAL_OPTIONS];
    await assertRejects(() => plan(local, destination), CliError, sentence("HOME", "Cline CLI"));
  });
});
