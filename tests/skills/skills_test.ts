// The skills in a folder, as clients of each era get them over each transport.
import { createHash } from "node:crypto";
import fs from "node:fs";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { group, McpError } from "../../mod.ts";
import { clientExtension } from "../../src/client/client.ts";
import { skillsOf } from "../../src/extensions/skills/client/skills.ts";
import { guard } from "../../src/layers/layers.ts";
import { parseFrontMatter } from "../../src/extensions/skills/front_matter.ts";
import { skills, type SkillsOptions } from "../../src/extensions/skills/skills.ts";
import { type Connection, fakeClock } from "../../src/testing/testing.ts";
import { behaviour, gate, turn, until } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";
import { random } from "../support/random.ts";
import { testClient } from "../support/test_server.ts";
import { patch } from "../support/patch.ts";

const declared = { extensions: [clientExtension({ id: "io.modelcontextprotocol/skills" })] };

/** Creates a folder with files. Disposing removes the folder. */
async function makeFolder(files: Readonly<Record<string, string | Uint8Array>>) {
  const path = await mkdtemp(`${tmpdir()}/mcp-skills-`);
  const write = async (name: string, content: string | Uint8Array) => {
    await mkdir(`${path}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await writeFile(`${path}/${name}`, content);
  };
  for (const [name, content] of Object.entries(files)) await write(name, content);
  return { path, write, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

const head = (name: string, more = "") => `---\nname: ${name}\ndescription: Does ${name}\n${more}---\n\n# ${name}\n`;

/** A valid folder with two skills, one of which contains a folder, a binary file and a nested skill. */
const FILES = {
  "git-flow/SKILL.md": head("git-flow", "license: MIT\nmetadata:\n  version: 1.0\n  tags: [a, b]\n"),
  "acme/refunds/SKILL.md": head("refunds"),
  "acme/refunds/examples/email.md": "Dear ä,\n",
  "acme/refunds/logo.bin": new Uint8Array([0, 255, 254, 1]),
  "acme/refunds/inner/SKILL.md": head("inner"),
  "acme/refunds/.env": "SECRET=1",
  // Clients refuse a skill whose files have such names.
  "acme/refunds/d:x.md": "a drive",
  "acme/refunds/a\nb.md": "two lines",
  "README.md": "no skill",
};

const digest = (content: string | Uint8Array) => `sha256:${createHash("sha256").update(content).digest("hex")}`;

async function list(client: Connection) {
  const { skills } = await client.request("skills/list", {});
  // deno-lint-ignore no-explicit-any -- the result that a client reads
  return skills as any[];
}

/** Runs a test, and collects the warnings in the meantime. */
async function withWarnings(run: (warnings: readonly string[]) => Promise<void>): Promise<void> {
  const warnings: string[] = [];
  using _patched = patch(console, { error: (text: string) => void warnings.push(text) });
  await run(warnings);
}

behaviour("skills are listed with their front matter and the digests of all files", async (connect, { era }) => {
  await using folder = await makeFolder(FILES);
  const { client } = await connect({ handlers: [skills({ dir: folder.path })] }, declared);
  const { skills: all, resultType, ttlMs, cacheScope } = await client.request("skills/list", {});
  assertEquals(
    [resultType, ttlMs, cacheScope],
    era === "modern" ? ["complete", 60_000, "private"] : [undefined, undefined, undefined],
  );
  const entries = new Map((await list(client)).map((entry) => [entry.uri, entry]));
  assertEquals([...entries.keys()].sort(), [
    "skill://acme/refunds/SKILL.md",
    "skill://acme/refunds/inner/SKILL.md",
    "skill://git-flow/SKILL.md",
  ]);
  assertEquals(Object(all).length, 3);
  assertEquals(entries.get("skill://git-flow/SKILL.md").frontmatter, {
    name: "git-flow",
    description: "Does git-flow",
    license: "MIT",
    metadata: { version: 1, tags: ["a", "b"] },
  });
  const refunds = entries.get("skill://acme/refunds/SKILL.md");
  const names = ["SKILL.md", "examples/email.md", "inner/SKILL.md", "logo.bin"] as const;
  assertEquals(
    refunds.resources.map(({ uri }: { uri: string }) => uri),
    names.map((name) => `skill://acme/refunds/${name}`),
  );
  for (const [at, name] of names.entries()) {
    const content = FILES[`acme/refunds/${name}`];
    const { uri, digest: stated, size } = refunds.resources[at];
    const { contents: [read] } = await client.readResource(uri);
    const bytes = read.text !== undefined
      ? new TextEncoder().encode(read.text)
      : Uint8Array.from(atob(String(read.blob)), (c) => c.charCodeAt(0));
    assertEquals([stated, size], [digest(content), bytes.length], name);
    assertEquals(digest(bytes), stated, name);
  }
  const one = await client.request("skills/get", { uri: "skill://acme/refunds/SKILL.md" });
  assertEquals(one.skill, refunds);
  assertEquals("nextCursor" in one, false);
});

behaviour("skills in a group, and within a layer of the server, have their methods", async (connect) => {
  await using folder = await makeFolder(FILES);
  const office = group("office", [skills({ dir: folder.path })]);
  const { client, server } = await connect({ handlers: [office], use: [guard({ input: [() => {}] })] }, declared);
  assertEquals((await list(client)).length, 3);
  await client.close();
  // The server must not read the folder again while it is removed.
  await server.close();
});

behaviour("skills of a hidden or disabled handler have no methods", async (connect) => {
  await using folder = await makeFolder(FILES);
  const hidden = group("office", [skills({ dir: folder.path })], {
    allow: ({ principal }) => principal?.id === "boss",
  });
  const own = skills({ dir: folder.path });
  const uri = "skill://git-flow/SKILL.md";
  const refuses = async (client: Connection) => {
    for (
      const [method, params] of [
        ["skills/list", {}],
        ["skills/get", { uri }],
        ["resources/directory/read", { uri: "skill://git-flow" }],
      ] as const
    ) {
      const { code } = await assertRejects(() => client.request(method, params), McpError);
      assertEquals(code, -32_601, method);
    }
    await assertRejects(() => client.readResource(uri), McpError);
  };
  const office = await connect({ handlers: [hidden] }, { ...declared, principal: { id: "boss" } });
  assertEquals((await list(office.client)).length, 3);
  await refuses(await office.join({ ...declared, principal: { id: "eve" } }));
  const { client, server } = await connect({ handlers: [own] }, declared);
  assertEquals((await list(client)).length, 3);
  server.handlers.disable(own);
  await refuses(client);
  server.handlers.enable(own);
  assertEquals((await list(client)).length, 3);
  // The servers must not read the folder again while it is removed.
  for (const each of [office.server, server]) await each.close();
});

behaviour("a skill is an ordinary resource, and its folders can be listed", async (connect) => {
  await using folder = await makeFolder(FILES);
  const { client } = await connect({ handlers: [skills({ dir: pathToFileURL(folder.path) })] }, declared);
  const listed = await client.listResources();
  const { size, ...refunds } = listed.find(({ uri }) => uri === "skill://acme/refunds/SKILL.md") ?? {};
  assertEquals(refunds, {
    uri: "skill://acme/refunds/SKILL.md",
    name: "refunds",
    description: "Does refunds",
    mimeType: "text/markdown",
  });
  assertEquals(size, FILES["acme/refunds/SKILL.md"].length);
  const read = async (uri: string) => (await client.request("resources/directory/read", { uri })).resources;
  assertEquals(await read("skill://acme/refunds"), [
    { uri: "skill://acme/refunds/SKILL.md", name: "SKILL.md", mimeType: "text/markdown", size },
    { uri: "skill://acme/refunds/examples", name: "examples", mimeType: "inode/directory" },
    { uri: "skill://acme/refunds/inner", name: "inner", mimeType: "inode/directory" },
    { uri: "skill://acme/refunds/logo.bin", name: "logo.bin", mimeType: "application/octet-stream", size: 4 },
  ]);
  for (
    const uri of ["skill://acme/refunds/SKILL.md", "skill://none", "skill://", "skill://acme/refunds/", "file:///etc"]
  ) {
    assertEquals((await assertRejects(() => read(uri), McpError)).code, -32602, uri);
    if (uri.endsWith("SKILL.md")) continue;
    assertEquals((await assertRejects(() => client.request("skills/get", { uri }), McpError)).code, -32602, uri);
  }
});

behaviour(
  "clients need not declare support for skills, and servers of every era list their skills",
  async (connect, { era }) => {
    await using folder = await makeFolder({ "fine/SKILL.md": head("fine") });
    const { client } = await connect({ handlers: [skills({ dir: folder.path })] });
    assertEquals((await list(client)).length, 1);
    const { capabilities } = era === "modern" ? await client.request("server/discover") : client.server;
    assertEquals(Object(capabilities).extensions, { "io.modelcontextprotocol/skills": { directoryRead: true } });
    assert("resources" in Object(capabilities));
  },
);

behaviour("files whose names do not stand for the same file on all operating systems are skipped", async (connect) => {
  const names = ["a.", "b .md ", "c\u200b.md", "nul.txt", "LPT1", "refere~1.md", "com2/x.md"];
  const files = Object.fromEntries(names.map((name) => [`fine/${name}`, "x"]));
  await using folder = await makeFolder({ "fine/SKILL.md": head("fine"), "fine/null.txt": "x", ...files });
  const { client } = await connect({ handlers: [skills({ dir: folder.path })] }, declared);
  const [{ files: listed }] = await skillsOf(client).list();
  assertEquals(listed === "dynamic" ? [] : listed.map(({ uri }) => uri), [
    "skill://fine/SKILL.md",
    "skill://fine/null.txt",
  ]);
}, { transports: ["memory"] });

behaviour("no path outside of the folder can be read", async (connect) => {
  await using outside = await makeFolder({ "secret.txt": "secret", "evil/SKILL.md": head("evil") });
  await using folder = await makeFolder({ "fine/SKILL.md": head("fine"), "fine/a.txt": "a" });
  await symlink(`${outside.path}/secret.txt`, `${folder.path}/fine/link.txt`);
  await symlink(outside.path, `${folder.path}/fine/away`);
  await symlink(`${outside.path}/evil`, `${folder.path}/evil`);
  const { client } = await connect({ handlers: [skills({ dir: folder.path })] }, declared);
  const [fine, ...more] = await list(client);
  assertEquals(more, []);
  assertEquals(fine.resources.map(({ uri }: { uri: string }) => uri), ["skill://fine/SKILL.md", "skill://fine/a.txt"]);
  for (
    const path of [
      ...["fine/link.txt", "fine/away/secret.txt", "evil/SKILL.md", "fine/../fine/a.txt", "fine/%2e%2e/fine/a.txt"],
      ...[
        "fine/..%2f..%2fetc/passwd",
        "fine/a.txt%00",
        "fine//a.txt",
        "/etc/passwd",
        "fine/.env",
        "FINE/A.TXT",
        "fine/a.txt/",
      ],
    ]
  ) {
    await assertRejects(() => client.readResource(`skill://${path}`), McpError, undefined, path);
  }
  // Replace a file with a symbolic link after the file was listed.
  await rename(`${folder.path}/fine/a.txt`, `${folder.path}/fine/b.txt`);
  await symlink(`${outside.path}/secret.txt`, `${folder.path}/fine/a.txt`);
  await assertRejects(() => client.readResource("skill://fine/a.txt"), McpError);
});

behaviour("skills that are invalid or too large are omitted, each with a warning", async (connect) => {
  const many = Object.fromEntries(Array.from({ length: 520 }, (_, i) => [`many/f${i}.txt`, `${i}`]));
  await using folder = await makeFolder({
    "good/SKILL.md": head("good"),
    "bare/SKILL.md": "# no front matter",
    "open/SKILL.md": "---\nname: open\n",
    "odd-name/SKILL.md": head("other-name"),
    "Upper/SKILL.md": head("Upper"),
    "silent/SKILL.md": "---\nname: silent\n---\n",
    "list/SKILL.md": "---\n- a\n---\n",
    "broken/SKILL.md": "---\nname: [\n---\n",
    "bomb/SKILL.md": `---\nname: bomb\ndescription: x\na: &a [1,1,1,1,1,1,1,1,1]\n${
      "bcdefgh".split("").map((key, i, all) => `${key}: &${key} [${Array(9).fill(`*${all[i - 1] ?? "a"}`).join()}]\n`)
        .join("")
    }---\n`,
    "binary/SKILL.md": new Uint8Array([255, 254]),
    "large/SKILL.md": head("large"),
    "large/big.bin": new Uint8Array(16_777_217),
    "many/SKILL.md": head("many"),
    ...many,
  });
  await withWarnings(async (warnings) => {
    const { client } = await connect({ handlers: [skills({ dir: folder.path })] }, declared);
    for (let i = 0; i < 2; i++) assertEquals((await list(client)).map(({ uri }) => uri), ["skill://good/SKILL.md"]);
    for (
      const [name, ...names] of [
        ["bare"],
        ["open"],
        ["odd-name", "other-name"],
        ["Upper", "64"],
        ["silent", "description"],
        ["list"],
        ["broken", "YAML"],
        ["bomb", "YAML"],
        ["binary", "SKILL.md", "UTF-8"],
        ["large", "16777"],
        ["many", "521", "512"],
      ]
    ) {
      const found = warnings.filter((text) => text.includes(`skill://${name}/SKILL.md`));
      assertEquals(found, [sentence(`skill://${name}/SKILL.md`, ...names)], name);
    }
    await assertRejects(() => client.readResource("skill://large/big.bin"), McpError);
  });
}, { transports: ["memory"] });

behaviour("clients are notified of changes, and read the current content", async (connect) => {
  await using folder = await makeFolder({ "fine/SKILL.md": head("fine"), "fine/a.txt": "a" });
  const { client } = await connect({ handlers: [skills({ dir: folder.path })] }, declared);
  const uri = "skill://fine/a.txt";
  const subscription = await client.subscribe({ resourcesListChanged: true, resourceSubscriptions: [uri] });
  const before = (await list(client))[0].resources[1];
  await folder.write("fine/a.txt", "changed");
  await until(
    () => subscription.received.some(({ params }) => params.uri === uri),
    "the client is notified of the changed file",
  );
  await until(async () => (await list(client))[0].resources[1].digest === digest("changed"), "the new digest");
  assert(before.digest !== digest("changed"));
  assertEquals((await client.readResource(uri)).contents[0].text, "changed");
  await folder.write("more/SKILL.md", head("more"));
  await until(
    () => subscription.received.some(({ method }) => method.endsWith("resources/list_changed")),
    "the new skill",
  );
  await until(async () => (await list(client)).length === 2, "both skills");
  await rm(`${folder.path}/more`, { recursive: true });
  await until(async () => (await list(client)).length === 1, "one skill");
});

behaviour("a slow scan of the folder is not repeated by each read", async (connect) => {
  await using folder = await makeFolder({ "fine/SKILL.md": head("fine") });
  const clock = fakeClock();
  const { readdir } = fs.promises;
  let scans = 0;
  using _patched = patch(fs.promises, {
    async readdir(...args: Parameters<typeof readdir>) {
      scans++;
      await clock.advance(1500);
      return await readdir(...args);
    },
  });
  const { client } = await connect({ handlers: [skills({ dir: folder.path })], clock }, declared);
  await list(client);
  const before = scans;
  for (let i = 0; i < 10; i++) await client.readResource("skill://fine/SKILL.md");
  assertEquals(scans, before);
  await clock.advance(10_000);
  await client.readResource("skill://fine/SKILL.md");
  assert(scans > before);
}, { transports: ["memory"], eras: ["modern"] });

behaviour("a server that closes waits until the folder is no longer read", async (connect) => {
  await using folder = await makeFolder({ "fine/SKILL.md": head("fine") });
  const { server } = await connect({ handlers: [skills({ dir: folder.path })] }, declared);
  await server.ready();
  const { lstat } = fs.promises;
  const { pass, open } = gate();
  let reading = 0;
  using _patched = patch(fs.promises, {
    async lstat(...args: Parameters<typeof lstat>) {
      reading++;
      await pass;
      return await lstat(...args).finally(() => reading--);
    },
  });
  await folder.write("fine/SKILL.md", head("fine"));
  await until(() => reading > 0, "the folder is read after the change");
  let isClosed = false;
  const closing = server.close().then(() => isClosed = true);
  await turn(10);
  assertEquals([reading > 0, isClosed], [true, false]);
  open();
  await closing;
  assertEquals(reading, 0);
}, { transports: ["memory"], eras: ["modern"] });

behaviour("the folder itself can be a skill, and long lists are paginated", async (connect) => {
  await using root = await makeFolder({});
  const name = root.path.split("/").at(-1)?.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replace(/-+$/, "") ?? "";
  await using parent = await makeFolder({
    [`${name}/SKILL.md`]: head(name),
    [`${name}/a b.txt`]: "x",
    ...Object.fromEntries(Array.from({ length: 120 }, (_, i) => [`all/s${i}/SKILL.md`, head(`s${i}`)])),
  });
  const { client, join } = await connect({ handlers: [skills({ dir: `${parent.path}/${name}` })] }, declared);
  const [own] = await list(client);
  assertEquals(own.resources.map(({ uri }: { uri: string }) => uri), [
    `skill://${name}/SKILL.md`,
    `skill://${name}/a%20b.txt`,
  ]);
  assertEquals((await client.readResource(`skill://${name}/a%20b.txt`)).contents[0].text, "x");
  assert(join);
  const other = await connect({ handlers: [skills({ dir: `${parent.path}/all` })] }, declared);
  const seen: string[] = [];
  let cursor: unknown;
  do {
    const page = await other.client.request("skills/list", { ...cursor !== undefined && { cursor } });
    seen.push(...(page.skills as { uri: string }[]).map(({ uri }) => uri));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assertEquals([seen.length, new Set(seen).size], [120, 120]);
  const error = await assertRejects(() => other.client.request("skills/list", { cursor: "x" }), McpError);
  assertEquals(error.code, -32602);
}, { transports: ["memory"] });

behaviour("if the folder's path is a dot, the skill has the folder's name on disk", async (connect) => {
  await using folder = await makeFolder({ "notes/SKILL.md": head("notes"), "notes/parts/a.txt": "a" });
  const before = process.cwd();
  for (const dir of [".", "./", "..", "parts/.."]) {
    process.chdir(`${folder.path}/notes/${dir === ".." ? "parts" : "."}`);
    try {
      const { client } = await connect({ handlers: [skills({ dir })] }, declared);
      assertEquals((await list(client)).map(({ uri }) => uri), ["skill://notes/SKILL.md"], dir);
    } finally {
      process.chdir(before);
    }
  }
}, { transports: ["memory"], eras: ["modern"] });

behaviour("a file that once could not be opened is served later", async (connect) => {
  await using folder = await makeFolder({ "fine/SKILL.md": head("fine"), "fine/a.txt": "a" });
  for (const failing of ["SKILL.md", "a.txt"]) {
    const { open } = fs.promises;
    let failures = 0;
    using _patched = patch(fs.promises, {
      open: async (path, ...rest) => {
        if (!String(path).endsWith(failing)) return await open(path, ...rest);
        failures++;
        throw new Error("EMFILE: too many open files");
      },
    });
    const { client } = await connect({ handlers: [skills({ dir: folder.path })] }, declared);
    await withWarnings(async () => assertEquals(await list(client), []));
    assert(failures > 0);
    fs.promises.open = open;
    await until(async () => (await list(client)).length === 1, "the skill");
  }
}, { transports: ["memory"], eras: ["modern"] });

Deno.test("parsing front matter prints nothing, and the size of front matter is limited", () => {
  const printed: unknown[] = [];
  using _patched = patch(process, { emitWarning: (text: unknown) => void printed.push(text) });
  parseFrontMatter("---\nname: !odd a\n? {b: 1}\n: c\n---\n");
  assertEquals(printed, []);
  const keys = Array.from({ length: 9000 }, (_, i) => `${i.toString(36)}:`).join("\n");
  assertThrows(() => parseFrontMatter(`---\n${keys}\n---\n`), SyntaxError, sentence("16384"));
});

behaviour("if the folder is missing, only calls that need the folder fail", async (connect) => {
  const { client, takeFaults } = await connect({ handlers: [skills({ dir: "/no/such/folder" })] }, declared);
  await assertRejects(() => client.request("skills/list", {}), McpError, sentence());
  assert(takeFaults().length > 0);
  assertEquals(await client.listTools().catch(() => []), []);
}, { transports: ["memory"], eras: ["modern"] });

Deno.test("10,000 files in skills can be listed and read", async () => {
  const { below } = random(1);
  const files: Record<string, string> = {};
  for (let skill = 0; skill < 100; skill++) {
    files[`s${skill}/SKILL.md`] = head(`s${skill}`);
    for (let i = 0; i < 99; i++) files[`s${skill}/d${below(5)}/f${i}.txt`] = `${i}`;
  }
  await using folder = await makeFolder(files);
  await using client = await testClient({ handlers: [skills({ dir: folder.path })] }, {
    ...declared,
    timeoutMs: 60_000,
  });
  const { skills: page } = await client.request("skills/list", {});
  assertEquals(Object(page).length, 20);
  for (const { uri, size } of Object(page)[7].resources) {
    const [{ text = "" }] = (await client.readResource(uri)).contents;
    assertEquals(new TextEncoder().encode(text).length, size);
  }
});

Deno.test("invalid options are refused", () => {
  for (
    const [options, message] of [
      [{}, sentence("dir")],
      [{ dir: "" }, sentence("dir")],
      [{ dir: new URL("https://example.com") }, sentence("file:")],
      [{ folder: "x" }, sentence("folder", "dir")],
      [{ dir: "x", ttlMs: -1 }, sentence("ttlMs", -1)],
      [{ dir: "x", cacheScope: "all" }, sentence("cacheScope", "all")],
    ] as const
  ) {
    assertThrows(() => skills(options as unknown as SkillsOptions), TypeError, message);
  }
});
