// Adding an entry to a TOML or YAML file preserves the rest of the text.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { parse as parseJsonc } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { CliError } from "../../src/cli/cli_error.ts";
import { clients } from "../../src/cli/install/clients.ts";
import { prepareChange, writeChange } from "../../src/cli/install/config_file.ts";
import { setEntry as setJsonc } from "../../src/cli/install/jsonc_edit.ts";
import { setEntry as setToml } from "../../src/cli/install/toml_edit.ts";
import { setEntry as setYaml } from "../../src/cli/install/yaml_edit.ts";
import { withFolder } from "../support/folder.ts";
import { sentence } from "../support/messages.ts";

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
