// The files of clients that `mcp install` writes, byte for byte: a new file, and a file with comments, other members
// and an entry to replace. The tests plan and write the entries in this process, because `install_test.ts` runs the
// command for each client.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
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
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { parse as parseJsonc } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { setEntry as setJsonc } from "../../src/cli/install/jsonc_edit.ts";
import { setEntry as setToml } from "../../src/cli/install/toml_edit.ts";
import { setEntry as setYaml } from "../../src/cli/install/yaml_edit.ts";
import { withFolder } from "../support/folder.ts";

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

// Adding an entry to a TOML or YAML file preserves the rest of the text.

const entry = { command: "deno", args: ["run", 'a "b"', "c\\d"], env: { KEY: "[mcp_servers.x]" } };
const toml = (text: string, name = "s", value: unknown = entry) =>
  setToml(text, value, { file: "f.toml", path: ["mcp_servers", name] });
const yaml = (text: string, name = "s", value: unknown = entry) =>
  setYaml(text, value, { file: "f.yaml", path: ["extensions", name] });

// Tables, which can appear in any order.
const tables = [
  "# a comment\n[other]\nx = 1 # here\n",
  "[mcp_servers.old]\ncommand = \"x\"\n\n[mcp_servers.old.env]\nA = '[mcp_servers.s]'\n",
  "[ mcp_servers . \"quoted name\" ]\ncommand = 'y'\n",
  '[long]\ntext = """\n[mcp_servers.s]\ncommand = "not this"\n"""\n',
  "[[list]]\nn = 1\n[[list]]\nn = 2\n",
  "[when]\nat = 2020-01-01T00:00:00Z\n",
];
const own = [
  "",
  '[mcp_servers.s]\ncommand = "before"\nargs = []\n',
  '[mcp_servers.s]\ncommand = "before"\n# of it\n[mcp_servers.s.env]\nA = "1"\n',
  '[mcp_servers."s"]\ncommand = "before"\n',
];

Deno.test("an entry is added to any TOML file, and the rest of the file is unchanged", () => {
  let state = 7;
  const random = (most: number) => (state = (state * 48271) % 2147483647) % most;
  for (let i = 0; i < 500; i++) {
    const pieces = tables.filter(() => random(2));
    pieces.splice(random(pieces.length + 1), 0, own[random(own.length)]);
    const before = `model = "x"\n${pieces.join("\n")}`;
    const after = toml(before);
    const value = parseToml(before);
    assertEquals(parseToml(after), { ...value, mcp_servers: { ...Object(value.mcp_servers), s: entry } });
    for (const piece of pieces) {
      if (tables.includes(piece)) assert(after.includes(piece.trim()), `${before}\n---\n${after}`);
    }
    assertEquals(toml(after), after);
  }
});

Deno.test("an entry is added after many comments in a JSON file", () => {
  for (const comment of ["/* a */", "// // // // // // // // // // // // // //\n"]) {
    const before = `{ "s": { "old": {} ${comment.repeat(40)}\n} }`;
    const after = setJsonc(before, { command: "y" }, { file: "f.json", path: ["s", "new"] });
    assertEquals(parseJsonc(after), { s: { old: {}, new: { command: "y" } } });
    assert(after.includes(comment.repeat(40)));
  }
});

Deno.test("Windows line breaks and comments after an entry are preserved in TOML", () => {
  const before = '[mcp_servers.s]\r\ncommand = "x"\r\n\r\n# about b\r\n[b]\r\n';
  const after = toml(before, "s", { command: "y" });
  assertEquals(after, '\r\n# about b\r\n[b]\r\n\r\n[mcp_servers.s]\r\ncommand = "y"\r\n');
});

for (
  const [text, name] of [
    ["a = ", "f.toml"],
    ["mcp_servers = 1", "mcp_servers"],
    ["mcp_servers = { a = { command = 'x' } }", "mcp_servers.s"],
    ["[mcp_servers]\ns = { command = 'x' }", "mcp_servers.s"],
    ["mcp_servers.s.command = 'x'", "mcp_servers.s"],
  ]
) {
  Deno.test(`TOML that cannot be edited is rejected: ${text}`, () => {
    assertThrows(() => toml(text), CliError, sentence("f.toml", name));
  });
}

for (
  const before of [
    "",
    "# only a comment\n",
    "extensions:\n",
    "a: 1\nextensions: # mine\n  # none\nb: 2\n",
    "extensions: {} # none\n",
    "GOOSE_MODEL: x # mine\nextensions:\n  # the first\n  other:\n    cmd: y\n    args: [a, b]\n",
    "extensions:\n  s:\n    cmd: old\n  t: {}\nlast: |\n  a\n  b\n",
    `long: "${"word ".repeat(60)}"\n`,
    "---\na: 1\n",
  ]
) {
  Deno.test(`an entry is added to YAML: ${JSON.stringify(before.slice(0, 40))}`, () => {
    const after = yaml(before);
    const value = Object(parseYaml(before));
    assertEquals(parseYaml(after), { ...value, extensions: { ...Object(value.extensions), s: entry } });
    for (const [comment] of before.matchAll(/#.*/g)) assert(after.includes(comment), after);
    assertEquals(yaml(after), after);
  });
}

const item = { name: "s", type: "stdio", command: "deno", args: ["run"] };
const list = (text: string) =>
  setYaml(text, item, { file: "f.yaml", path: ["servers", "s"], isList: true, required: { name: "x", schema: "v1" } });

for (
  const [before, after] of [
    ["", "name: x\nschema: v1\nservers:\n  - ITEM\n"],
    ["# only a comment\n", "# only a comment\n\nname: x\nschema: v1\nservers:\n  - ITEM\n"],
    ["models: []\n", "models: []\nservers:\n  - ITEM\n"],
    ["servers:\n# end\n", "servers:\n  # end\n  - ITEM\n"],
    ["servers: []\nlast: 1\n", "servers:\n  - ITEM\nlast: 1\n"],
    ["servers:\n- name: t\n", "servers:\n  - name: t\n  - ITEM\n"],
    ["servers:\n  - uses: a/b\n  - s\n  - null\n", "servers:\n  - uses: a/b\n  - s\n  - null\n  - ITEM\n"],
    ["servers:\n  # of s\n  - name: s\n  - name: t\n", "servers:\n  # of s\n  - ITEM\n  - name: t\n"],
    ["servers:\n  - name: t\n\n  # of s\n  - { name: s }\n", "servers:\n  - name: t\n\n  # of s\n  - ITEM\n"],
  ]
) {
  Deno.test(`an entry is added to a YAML list: ${JSON.stringify(before)}`, () => {
    const text = "name: s\n    type: stdio\n    command: deno\n    args:\n      - run";
    assertEquals(list(before), after.replace("ITEM", text));
    assertEquals(list(list(before)), list(before));
  });
}

for (const text of ["servers: {}", "servers: 1", "- name: s", "servers:\n  - &a { name: s }\n  - *a"]) {
  Deno.test(`YAML in which a list of servers cannot be edited is rejected: ${JSON.stringify(text)}`, () => {
    assertThrows(() => list(text), CliError, sentence("f.yaml"));
  });
}

for (
  const text of ["a: [", "- a", "extensions: 1", "extensions: [a]", "a: 1\na: 2", "extensions:\n  s: &a {}\n  t: *a"]
) {
  Deno.test(`YAML that cannot be edited is rejected: ${JSON.stringify(text)}`, () => {
    assertThrows(() => yaml(text), CliError, sentence("f.yaml"));
  });
}

Deno.test("a file is not changed while another program holds its lock, and each backup gets a free name", async () => {
  await withFolder({ "mcp.json": "{}" }, async (folder) => {
    const file = `${folder}/mcp.json`;
    const add = async (name: string) => {
      const destination = { client: clients[0], file, isShared: false };
      return await writeChange(await prepareChange(destination, { name, entry, mayReplace: false }));
    };
    writeFileSync(`${file}.lock`, "");
    const { message } = await assertRejects(() => add("a"), CliError);
    assertEquals(message, sentence(`${file}.lock`));
    rmSync(`${file}.lock`);
    assertEquals([await add("a"), await add("b"), await add("c")], [`${file}.bak`, `${file}.2.bak`, `${file}.3.bak`]);
    assertEquals(readdirSync(folder).sort(), ["mcp.json", "mcp.json.2.bak", "mcp.json.3.bak", "mcp.json.bak"]);
  });
});
