// Tests of `file()` and `folder()`: reading, listing and change notifications, and files that clients must not reach.
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import fs from "node:fs";
import { rename, rm, symlink } from "node:fs/promises";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { createServer, group, type Handler } from "../../mod.ts";
import { file, type FileOptions, folder, type FolderOptions } from "../../src/ready/ready.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { behaviour, textOf, turn, until } from "../support/behaviour.ts";
import { type Files, system, withFolder, writeFiles } from "../support/folder.ts";
import { toShown } from "../../src/core/kit/shown.ts";
import { sentence } from "../support/messages.ts";
import { testClient, testServer } from "../support/test_server.ts";

const FILES: Files = {
  "notes/a.md": "# A\nalpha\n",
  "notes/b/c d.txt": "Beta\nalphabet\n",
  "notes/.env": "SECRET=alpha",
  "notes/node_modules/m.js": "alpha",
  "secret.md": "alpha OUTSIDE",
  "notes-evil/x.md": "alpha EVIL",
};

const about = { name: "local", version: "1.0.0" };

async function listUris(client: Connection): Promise<readonly string[]> {
  return (await client.listResources()).map(({ uri }) => uri).sort();
}

async function readText(client: Connection, uri: string): Promise<unknown> {
  const { contents: [content] } = await client.readResource(uri);
  return content.text;
}

behaviour("a folder can be listed, read, completed and searched", async (connect) => {
  await withFolder(FILES, async (root) => {
    const notes = folder({ path: `${root}/notes`, uri: "notes://", tools: "notes_", description: "My notes" });
    const { client } = await connect({ handlers: [notes] });
    assertEquals(await listUris(client), ["notes://a.md", "notes://b/c%20d.txt"]);
    assertEquals(await readText(client, notes.uri({ path: "b/c d.txt" })), "Beta\nalphabet\n");
    const [template] = await client.listResourceTemplates();
    assertEquals([template.uriTemplate, template.name, template.description], ["notes://{+path}", "notes", "My notes"]);
    const ref = { type: "ref/resource", uri: "notes://{+path}" } as const;
    assertEquals((await client.complete(ref, { name: "path", value: "B" })).values, ["b/"]);
    assertEquals((await client.listTools()).map(({ name }) => name), ["notes_list", "notes_search", "notes_read"]);
    assertEquals(textOf(await client.callTool("notes_list")), "a.md (10 bytes)\nb/");
    assertEquals(textOf(await client.callTool("notes_read", { path: "a.md", from: 2, lines: 1 })), "alpha");
    assertEquals(
      textOf(await client.callTool("notes_search", { query: "ALPHA" })),
      "a.md:2: alpha\nb/c d.txt:2: alphabet",
    );
  });
});

behaviour("a single file is a resource, and is read again for each request", async (connect) => {
  await withFolder({ "style.md": "one", "b.bin": "" }, async (root) => {
    const style = file({ path: pathToFileURL(`${root}/style.md`), uri: "guide://style", title: "Style" });
    const { client } = await connect({ handlers: [style, file({ path: `${root}/b.bin`, mimeType: "a/b" })] });
    const listed = await client.listResources();
    assertEquals(listed.map(({ uri, name, title, mimeType }) => [uri, name, title, mimeType]), [
      ["guide://style", "style.md", "Style", "text/markdown"],
      ["file:///b.bin", "b.bin", undefined, "a/b"],
    ]);
    assertEquals(await readText(client, style.uri()), "one");
    await writeFiles(root, { "style.md": "two" });
    assertEquals(await readText(client, style.uri()), "two");
    await rm(`${root}/style.md`);
    await assertRejects(() => client.readResource(style.uri()), Error, sentence());
  });
}, { perInstance: "services" });

Deno.test("close() waits for the file operations of watchers", async () => {
  await withFolder({ "a.md": "one", "b/c.md": "two" }, async (root) => {
    let running = 0;
    const names = ["stat", "lstat", "readdir", "realpath"] as const;
    const originals = names.map((name) => [name, fs.promises[name]] as const);
    for (const [name, original] of originals) {
      const slow = async (...args: unknown[]) => {
        running++;
        try {
          await turn(5);
          return await Reflect.apply(original, fs.promises, args);
        } finally {
          running--;
        }
      };
      Object.assign(fs.promises, { [name]: slow });
    }
    try {
      const single = file({ path: `${root}/a.md` });
      const whole = folder({ path: root, uri: "notes://" });
      for (const handlers of [[single], [whole], [single, whole]]) {
        const server = testServer({ handlers });
        await server.ready();
        await server.close();
        assertEquals(running, 0);
      }
    } finally {
      Object.assign(fs.promises, Object.fromEntries(originals));
    }
  });
});

/** Paths that lead out of a folder, or to files that the folder's options exclude. */
const toHostile = (root: string): readonly string[] => [
  "../secret.md",
  "..",
  "b/../../secret.md",
  "./../secret.md",
  "..\\secret.md",
  "%2e%2e/secret.md",
  "%2e%2e%2fsecret.md",
  "link.md",
  "up/secret.md",
  "evil/x.md",
  "../notes-evil/x.md",
  `${root}/secret.md`,
  `/${root}/secret.md`,
  "/etc/passwd",
  "a.md\0.txt",
  "a.md%00.txt",
  ".env",
  "./.env",
  "b/../.env",
  "shown",
  "node_modules/m.js",
  "modules/m.js",
  "loop",
  "file:///etc/passwd",
  "C:\\Windows\\win.ini",
  "x".repeat(5000),
];

behaviour("no path leads out of a folder, or to an excluded file", async (connect) => {
  await withFolder(FILES, async (root) => {
    const inner = `${root}/notes`;
    await symlink("../secret.md", `${inner}/link.md`);
    await symlink("..", `${inner}/up`);
    await symlink("../notes-evil", `${inner}/evil`);
    await symlink(".env", `${inner}/shown`);
    await symlink("node_modules", `${inner}/modules`);
    await symlink("loop", `${inner}/loop`);
    await symlink("a.md", `${inner}/inside.md`);
    const { client } = await connect({ handlers: [folder({ path: inner, uri: "notes://", tools: true })] });
    assertEquals(await listUris(client), ["notes://a.md", "notes://b/c%20d.txt", "notes://inside.md"]);
    assertEquals(await readText(client, "notes://inside.md"), "# A\nalpha\n");
    for (const path of toHostile(root)) {
      for (const name of ["read", "list"]) {
        const result = await client.callTool(name, { path });
        assert(result.isError, `${name} ${path}`);
        assertEquals(textOf(result).replace(toShown(path), "PATH"), sentence(name, "PATH"));
      }
      for (const encoded of [path, encodeURIComponent(path), path.split("/").map(encodeURIComponent).join("/")]) {
        const found = await client.readResource(`notes://${encoded}`).then(({ contents }) => contents, () => []);
        assert(!found.length, `${encoded}: ${JSON.stringify(found)}`);
      }
    }
    assertEquals(textOf(await client.callTool("search", { query: "e", files: "../**" })), sentence());
    const found = textOf(await client.callTool("search", { query: "alpha" }));
    assert(!/OUTSIDE|EVIL|SECRET/.test(found), found);
  });
});

behaviour("a file that is replaced by a link out of its folder is not read", async (connect) => {
  await withFolder({ "in/a.md": "inside", "in/..data/b.md": "mounted", "secret.md": "OUTSIDE" }, async (root) => {
    await symlink("..data/b.md", `${root}/in/b.md`);
    const handlers = ["a.md", "b.md"].map((name) => file({ path: `${root}/in/${name}` }));
    const { client, server } = await connect({ handlers });
    // The server checks the files when it starts.
    await server.ready();
    assertEquals(await readText(client, "file:///a.md"), "inside");
    // Links within the folder are followed, because mounted configuration files are such links.
    assertEquals(await readText(client, "file:///b.md"), "mounted");
    for (const name of ["a.md", "b.md"]) {
      await rm(`${root}/in/${name}`);
      await symlink("../secret.md", `${root}/in/${name}`);
      await assertRejects(() => client.readResource(`file:///${name}`), Error, sentence());
    }
    // If the folder is replaced by a link to another folder, the handler still reads the folder's original path.
    await rename(`${root}/in`, `${root}/moved`);
    await symlink(".", `${root}/in`);
    await writeFiles(root, { "a.md": "OUTSIDE" });
    await assertRejects(() => client.readResource("file:///a.md"), Error, sentence());
  });
}, { perInstance: "services" });

behaviour("subscribers are notified of files that are written, added and removed", async (connect) => {
  await withFolder({ "n/a.md": "1", "f.md": "1" }, async (root) => {
    const handlers = [folder({ path: `${root}/n`, uri: "n:///" }), file({ path: `${root}/f.md`, uri: "f://f" })];
    const { client, server } = await connect({ handlers });
    await server.ready();
    await using subscription = await client.subscribe({
      resourcesListChanged: true,
      resourceSubscriptions: ["n:///a.md", "f://f"],
    });
    const has = (method: string, uri?: string) =>
      subscription.received.some((each) =>
        each.method === `notifications/resources/${method}` && (uri === undefined || each.params.uri === uri)
      );
    // A change before the first poll of a file is not detected, so write the file until a change is detected.
    let size = 1;
    for (const [path, uri] of [["n/a.md", "n:///a.md"], ["f.md", "f://f"]]) {
      await until(async () => {
        await writeFiles(root, { [path]: "x".repeat(++size) });
        return has("updated", uri);
      }, uri);
    }
    assert(!has("list_changed"));
    await writeFiles(root, { "n/sub/new.md": "1" });
    await until(() => has("list_changed"), "the list contains the new file");
    assertEquals(await listUris(client), ["f://f", "n:///a.md", "n:///sub/new.md"]);
  });
});

Deno.test("a relative path is relative to the working directory, and a URL is accepted too", async () => {
  await withFolder(FILES, async (root) => {
    const before = process.cwd();
    process.chdir(root);
    try {
      const url = new URL("./notes/", pathToFileURL(`${root}/server.ts`));
      for (const path of ["notes", "./notes", "notes/", url, url.href, pathToFileURL(`${root}/notes`)]) {
        await using client = await testClient({ handlers: [folder({ path })] });
        assertEquals(await listUris(client), ["file:///notes/a.md", "file:///notes/b/c%20d.txt"], String(path));
      }
      const handlers = [file({ path: "secret.md" }), file({ path: "./notes/a.md" }), folder({ path: "." })];
      await using client = await testClient({ handlers });
      const uris = await listUris(client);
      assertStringIncludes(uris.join(), "file:///notes-evil/x.md");
      assertEquals(await readText(client, "file:///secret.md"), FILES["secret.md"]);
      assertEquals(await readText(client, "file:///a.md"), FILES["notes/a.md"]);
    } finally {
      process.chdir(before);
    }
  });
});

Deno.test("a server with a missing folder or file does not start, and the error names the path", async () => {
  await withFolder({ "a.md": "", "n/b.md": "" }, async (root) => {
    await symlink("../a.md", `${root}/n/link.md`);
    const cases: readonly (readonly [Handler, string])[] = [
      [folder({ path: `${root}/gone` }), sentence(`${root}/gone`)],
      [folder({ path: `${root}/a.md` }), sentence(`${root}/a.md`)],
      [file({ path: `${root}/gone` }), sentence(`${root}/gone`)],
      [file({ path: `${root}/n` }), sentence(`${root}/n`, "folder()")],
      [file({ path: `${root}/n/link.md` }), sentence(`${root}/n/link.md`)],
    ];
    for (const [handler, expected] of cases) {
      const server = testServer({ handlers: [handler], observer: { fault() {} } });
      const error = await assertRejects(() => server.ready(), Error);
      assertEquals(error.message, expected);
      // The request still gets a response, although the folder is missing.
      await using client = await connectTest(server);
      await client.listResources();
    }
  });
});

Deno.test("options that restrict a folder restrict the folder's tools too", async () => {
  await withFolder(FILES, async (root) => {
    const path = `${root}/notes`;
    const options: FolderOptions = {
      path,
      tools: true,
      allow: ({ principal }) => principal?.id === "ada",
      scopes: ["read"],
      tags: ["files"],
    };
    const notes = folder(options);
    const server = testServer({ handlers: [notes] });
    await using ada = await connectTest(server, { principal: { id: "ada", scopes: ["read"] } });
    await using weak = await connectTest(server, { principal: { id: "ada", scopes: [] } });
    await using bob = await connectTest(server, { principal: { id: "bob", scopes: ["read"] } });
    assertEquals((await ada.listTools()).length, 3);
    assertEquals([(await bob.listTools()).length, (await listUris(bob)).length], [0, 0]);
    for (const client of [weak, bob]) {
      await assertRejects(() => client.callTool("read", { path: "a.md" }));
      await assertRejects(() => client.readResource("file:///notes/a.md"));
    }
    for (const selected of [notes, { tag: "files" }]) {
      server.handlers.disable(selected);
      assertEquals([(await ada.listTools()).length, (await listUris(ada)).length], [0, 0]);
      server.handlers.enable(selected);
      assertEquals((await ada.listTools()).length, 3);
    }
    server.handlers.remove(notes);
    assertEquals((await ada.listTools()).length, 0);
  });
});

Deno.test("a folder in nested groups gets the groups' prefixes and options", async () => {
  await withFolder(FILES, async (root) => {
    const inner = group("docs", [folder({ path: `${root}/notes`, tools: true }), file({ path: `${root}/secret.md` })]);
    const outer = group("team", [inner], { allow: ({ principal }) => principal !== undefined });
    const server = testServer({ handlers: [outer] });
    await server.ready();
    await using ada = await connectTest(server, { principal: { id: "ada" } });
    await using guest = await connectTest(server);
    assertEquals((await ada.listTools()).map(({ name }) => name), [
      "team_docs_list",
      "team_docs_search",
      "team_docs_read",
    ]);
    assertEquals((await listUris(ada)).length, 3);
    assertEquals([(await guest.listTools()).length, (await listUris(guest)).length], [0, 0]);
    await assertRejects(() => guest.readResource("file:///secret.md"));
  });
});

Deno.test("files larger than maxBytes are errors, and pipes are not opened", async () => {
  await withFolder({ "n/big": "x".repeat(11), "n/fits": "x".repeat(10) }, async (root) => {
    await system("mkfifo", `${root}/n/pipe`);
    const handlers = [folder({ path: `${root}/n`, maxBytes: 10 }), file({ path: `${root}/n/big`, maxBytes: 10 })];
    await using client = await testClient({ handlers });
    assertEquals(await readText(client, "file:///n/fits"), "x".repeat(10));
    for (const uri of ["file:///n/big", "file:///big"]) {
      const { message } = await assertRejects(() => client.readResource(uri), Error);
      assertEquals(message, sentence("big", "10", "maxBytes"));
    }
    await assertRejects(() => client.readResource("file:///n/pipe"), Error, sentence("pipe"));
  });
});

Deno.test("the options hidden and exclude decide which files are served", async () => {
  await withFolder(FILES, async (root) => {
    const handler = folder({ path: `${root}/notes`, hidden: true, exclude: ["*.md", "b/*.txt"] });
    await using client = await testClient({ handlers: [handler] });
    assertEquals(await listUris(client), ["file:///notes/.env"]);
    await assertRejects(() => client.readResource("file:///notes/a.md"), Error, sentence());
    await assertRejects(() => client.readResource("file:///notes/node_modules/m.js"), Error, sentence());
  });
});

Deno.test("invalid options throw", () => {
  const make = (options: object) => () => folder(options as FolderOptions);
  const makeFile = (options: object) => () => file(options as FileOptions);
  assertThrows(make({}), TypeError, sentence("path", "./notes"));
  assertThrows(make({ path: "" }), TypeError, sentence("path", "./notes"));
  assertThrows(make({ path: "a\0b" }), TypeError, sentence("path", "NUL"));
  assertThrows(make({ path: "~/notes" }), TypeError, sentence("path", "~"));
  assertThrows(make({ path: "https://a.example/" }), TypeError, sentence("path", "file:"));
  assertThrows(make({ path: new URL("file://host/share") }), TypeError, sentence("path", "file:"));
  assertThrows(make({ path: "file:///a%2f..%2fb" }), TypeError, sentence("path", "file:"));
  assertThrows(make({ dir: "/a" }), TypeError, sentence("dir", "path"));
  assertThrows(make({ path: "/a", uri: "notes" }), TypeError, sentence("uri", "notes"));
  assertThrows(make({ path: "/a", uri: "notes://{x}/" }), TypeError, sentence("uri", "notes://{x}/"));
  assertThrows(make({ path: "/a", tools: "a b" }), TypeError, sentence("tools", "a b"));
  assertThrows(make({ path: "/a", maxBytes: 0 }), TypeError, sentence("maxBytes", 0));
  assertThrows(make({ path: "/a", exclude: ["{a"] }), TypeError, sentence("/a", "exclude", "{a"));
  assertThrows(makeFile({ path: "/a/" }), TypeError, sentence("path", "folder()"));
  assertThrows(makeFile({ path: ".." }), TypeError, sentence("path", "folder()"));
  assertThrows(makeFile({ path: "/a", tools: true }), TypeError, sentence("tools", "folder()"));
  const same = [folder({ path: "/a/notes" }), folder({ path: "/b/notes" })];
  assertThrows(() => createServer({ ...about, handlers: same }), TypeError, sentence());
});
