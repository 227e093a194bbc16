// Files, glob patterns and folders as resources and tools. They cannot reach files outside of their folder, and clients
// are notified of changes.
import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { createServer } from "../../../mod.ts";
import { load } from "../../../src/cli/load.ts";
import { Folder, isUnavailable } from "../../../src/ready/files/confined_folder.ts";
import { toMatcher } from "../../../src/ready/files/glob.ts";
import { startChild, toCommand } from "../../../src/testing/http_server.ts";
import { folder } from "../../../src/ready/ready.ts";
import { type Connection, connectTest } from "../../../src/testing/testing.ts";
import { system, toOutcome, withFolder, withServer, writeFiles } from "../folder.ts";
import { textOf, until } from "../../support/behaviour.ts";
import { sentence } from "../../support/messages.ts";

const files = {
  "a.md": "# A\nalpha\n",
  "b/c.txt": "Beta\nalphabet\n",
  "b/d e#?%.txt": "odd",
  "b/empty.json": "",
  ".hidden/x.md": "alpha hidden",
  ".env": "SECRET=alpha",
  "node_modules/m/index.js": "alpha module",
};

async function listUris(client: Connection): Promise<string[]> {
  // The cast is safe, because other tests check the shape of list results.
  const { resources } = await client.request("resources/list") as unknown as { resources: { uri: string }[] };
  return resources.map(({ uri }) => uri);
}

async function readText(client: Connection, uri: string): Promise<string | undefined> {
  const { contents } = await client.readResource(uri);
  return contents[0].text;
}

Deno.test("a folder is served as resources, with tools that list, search and read its files", async () => {
  await withServer(files, async (client, folder) => {
    assertEquals(await listUris(client), [
      "file:///a.md",
      "file:///b/c.txt",
      "file:///b/d%20e%23%3F%25.txt",
      "file:///b/empty.json",
    ]);
    const { contents } = await client.readResource("file:///b/d%20e%23%3F%25.txt");
    assertEquals(contents, [{ uri: "file:///b/d%20e%23%3F%25.txt", mimeType: "text/plain", text: "odd" }]);
    assertEquals((await client.readResource("file:///a.md")).contents[0].mimeType, "text/markdown");
    assertEquals((await client.listTools()).map(({ name, annotations }) => [name, annotations]), [
      ["list", { readOnlyHint: true, destructiveHint: false, openWorldHint: false }],
      ["search", { readOnlyHint: true, destructiveHint: false, openWorldHint: false }],
      ["read", { readOnlyHint: true, destructiveHint: false, openWorldHint: false }],
    ]);
    assertEquals(toOutcome(await client.callTool("list")), { text: "a.md (10 bytes)\nb/", isError: false });
    assertEquals(
      toOutcome(await client.callTool("list", { path: "./b//" })).text,
      "c.txt (14 bytes)\nd e#?%.txt (3 bytes)\nempty.json (0 bytes)",
    );
    assertEquals(toOutcome(await client.callTool("search", { query: "ALPHA" })), {
      text: "a.md:2: alpha\nb/c.txt:2: alphabet",
      isError: false,
    });
    assertEquals(
      toOutcome(await client.callTool("search", { query: "alpha", files: "**/*.txt" })).text,
      "b/c.txt:2: alphabet",
    );
    assertEquals(toOutcome(await client.callTool("search", { query: "gamma" })).text, sentence());
    assertEquals(toOutcome(await client.callTool("read", { path: "a.md" })).text, files["a.md"]);
    assertEquals(toOutcome(await client.callTool("read", { path: "a.md", from: 2, lines: 1 })).text, "alpha");
    assertEquals(await system("ls", "-A", folder), ".env\n.hidden\na.md\nb\nnode_modules");
  }, "");
});

Deno.test("paths in a folder are completed", async () => {
  await withServer(files, async (client) => {
    const complete = async (value: string) => {
      const ref = { type: "ref/resource", uri: "file:///{+path}" };
      const { completion } = await client.request("completion/complete", { ref, argument: { name: "path", value } });
      return (completion as { values: string[] }).values; // Other tests check the shape of the result.
    };
    assertEquals(await complete(""), ["a.md", "b/"]);
    assertEquals(await complete("B"), ["b/"]);
    assertEquals(await complete("A"), ["a.md"]);
    assertEquals(await complete("b/C"), ["b/c.txt"]);
    assertEquals(await complete("../"), []);
    assertEquals(await complete(".hidden/"), []);
  }, "");
});

Deno.test("no path can read a file outside of the folder", async () => {
  await withFolder({ "secret.md": "Secret", "root/a.md": "A", "root-evil/b.md": "Evil" }, async (outside) => {
    const root = `${outside}/root`;
    await system("ln", "-s", "../secret.md", `${root}/link.md`);
    await system("ln", "-s", "..", `${root}/up`);
    await system("ln", "-s", "../root-evil", `${root}/evil`);
    await system("ln", "-s", "a.md", `${root}/inside.md`);
    await system("ln", "-s", "loop", `${root}/loop`);
    await system("mkdir", `${root}/.git`);
    await system("sh", "-c", `echo key > ${root}/.git/config`);
    await system("ln", "-s", ".git/config", `${root}/shown`);
    await using server = (await load(root)).server;
    await using client = await connectTest(server);
    assertEquals(await listUris(client), ["file:///a.md", "file:///inside.md"]);
    assertEquals(await readText(client, "file:///inside.md"), "A");
    const paths = [
      "../secret.md",
      "..",
      "up/secret.md",
      "link.md",
      "evil/b.md",
      "../root-evil/b.md",
      `${outside}/secret.md`,
      "/etc/passwd",
      "a.md/../../secret.md",
      "./../secret.md",
      "..\\secret.md",
      "a.md\0.txt",
      ".git/config",
      "shown",
      "loop",
      "gone",
      "x".repeat(5000),
      "a/".repeat(2000),
    ];
    const [reasons, messages] = [new Set<string | undefined>(), new Set<string>()];
    for (const path of paths) {
      for (const name of ["read", "list"]) {
        const { text, isError } = toOutcome(await client.callTool(name, { path }));
        assert(isError, `${name} ${path}`);
        reasons.add(text.split(": ").at(-1));
      }
      for (const encoded of [path, encodeURIComponent(path), path.split("/").map(encodeURIComponent).join("/")]) {
        const error = await assertRejects(() => client.readResource(`file:///${encoded}`), Error);
        messages.add(error.message);
      }
    }
    // A path is outside of the folder, or does not exist.
    assertEquals([...reasons], [sentence(), sentence()]);
    assertEquals([...messages], [sentence()]);
    assertEquals(toOutcome(await client.callTool("search", { query: "e" })).text, sentence());
  });
});

Deno.test("binary files are returned unchanged, and pipes and large files are errors", async () => {
  const file = { resources: [{ folder: "f", tools: true, maxBytes: 1000 }] };
  await withFolder(
    { "mcp.jsonc": file, "f/big.txt": "x".repeat(1001), "f/fits.txt": "x".repeat(1000) },
    async (folder) => {
      await system("mkfifo", `${folder}/f/pipe`);
      await system("sh", "-c", `printf '\\211PNG\\000' > ${folder}/f/i.png; printf '\\377\\376' > ${folder}/f/raw`);
      await system("truncate", "-s", "10G", `${folder}/f/huge`);
      await using server = (await load(`${folder}/mcp.jsonc`)).server;
      await using client = await connectTest(server);
      const read = async (path: string) => await client.callTool("read", { path });
      assertEquals(toOutcome(await read("fits.txt")).text.length, 1000);
      const tooLarge = sentence("huge", 1000, "maxBytes");
      assertEquals(toOutcome(await read("big.txt")), { text: sentence("big.txt", 1000, "maxBytes"), isError: true });
      assertEquals(toOutcome(await read("huge")), { text: tooLarge, isError: true });
      assertEquals(toOutcome(await read("pipe")), { text: sentence("pipe"), isError: true });
      assertEquals(toOutcome(await read("")), { text: sentence(), isError: true });
      assertEquals((await read("i.png")).content, [{ type: "image", data: "iVBORwA=", mimeType: "image/png" }]);
      assertEquals((await read("raw")).content, [
        { type: "resource", resource: { uri: "file:///f/raw", mimeType: "application/octet-stream", blob: "//4=" } },
      ]);
      assertEquals((await client.readResource("file:///f/i.png")).contents, [
        { uri: "file:///f/i.png", mimeType: "image/png", blob: "iVBORwA=" },
      ]);
      const error = await assertRejects(() => client.readResource("file:///f/huge"), Error);
      assertEquals(error.message, tooLarge);
      assertEquals(toOutcome(await client.callTool("search", { query: "x" })).text.startsWith("fits.txt:1: xxx"), true);
    },
  );
});

Deno.test("an unreadable file is an error and does not affect other files", async () => {
  const files = { "mcp.jsonc": { resources: [{ folder: "f", tools: true }] }, "f/a.md": "A", "f/b/c.md": "C" };
  await withServer(files, async (client, folder) => {
    // Root can read a file with mode 000, so the test uses a loop of symbolic links, which no user can read.
    await system("ln", "-s", "y", `${folder}/f/x`);
    await system("ln", "-s", "x", `${folder}/f/y`);
    await system("chmod", "000", `${folder}/f/b`);
    const isRoot = (await system("id", "-u")) === "0";
    try {
      const uris = await listUris(client);
      assertEquals(uris[0], "file:///f/a.md");
      assertEquals(uris.length, isRoot ? 2 : 1);
      const { text, isError } = toOutcome(await client.callTool("read", { path: "b/c.md" }));
      assertEquals(isError, !isRoot);
      assertStringIncludes(text, isRoot ? "C" : "EACCES");
      assertEquals(toOutcome(await client.callTool("read", { path: "x" })).isError, true);
    } finally {
      await system("chmod", "700", `${folder}/f/b`);
    }
  });
});

Deno.test("a config file selects which files of a folder are served, and the names of the tools", async () => {
  const file = {
    resources: [
      { folder: ".", hidden: true, exclude: ["*.txt", ".hidden"], tools: "all_", watch: false },
      { folder: "b", name: "bees", title: "Bees", tools: "bee_" },
    ],
  };
  await withServer({ ...files, "mcp.jsonc": file }, async (client) => {
    assertEquals((await listUris(client)).filter((uri) => !uri.startsWith("file:///b/")), [
      "file:///.env",
      "file:///a.md",
      "file:///mcp.jsonc",
    ]);
    // A file in two nested folders is served by the inner folder.
    assertEquals(await readText(client, "file:///b/c.txt"), files["b/c.txt"]);
    assertEquals(toOutcome(await client.callTool("all_read", { path: "b/c.txt" })).isError, true);
    assertEquals(toOutcome(await client.callTool("bee_list")).text.split("\n").length, 3);
    const { resourceTemplates } = await client.request("resources/templates/list");
    assertEquals(
      (resourceTemplates as { uriTemplate: string; title?: string }[]).map((
        { uriTemplate, title },
      ) => [uriTemplate, title]),
      [["file:///b/{+path}", "Bees"], ["file:///{+path}", undefined]],
    );
  });
});

Deno.test("files and patterns in a config file are served as separate resources", async () => {
  const file = {
    resources: [
      { file: "a.md", uri: "notes://a", name: "first", description: "The first", annotations: { priority: 1 } },
      { glob: "b/**/*.{txt,json}", mimeType: "text/x-bee" },
      { glob: ".hidden/*.md" },
      { glob: "**/*.md" },
    ],
  };
  await withServer({ ...files, "mcp.jsonc": file }, async (client) => {
    assertEquals(await listUris(client), [
      "notes://a",
      "file:///b/c.txt",
      "file:///b/d%20e%23%3F%25.txt",
      "file:///b/empty.json",
      "file:///.hidden/x.md",
      "file:///a.md",
    ]);
    const { resources } = await client.request("resources/list");
    assertEquals((resources as unknown[])[0], {
      uri: "notes://a",
      name: "first",
      description: "The first",
      mimeType: "text/markdown",
      annotations: { priority: 1 },
    });
    assertEquals(await readText(client, "notes://a"), files["a.md"]);
    assertEquals((await client.readResource("file:///b/c.txt")).contents[0].mimeType, "text/x-bee");
  });
});

Deno.test("a pattern matches files of packages only if it names node_modules", async () => {
  const packaged = { ...files, "node_modules/m/README.md": "package" };
  for (
    const [glob, uris] of [["**/*.md", ["file:///a.md"]], ["node_modules/*/*.md", ["file:///node_modules/m/README.md"]]]
  ) {
    await withServer({ ...packaged, "mcp.jsonc": { resources: [{ glob }] } }, async (client) => {
      assertEquals(await listUris(client), uris);
    });
  }
});

Deno.test("a file that was replaced by a link to the outside can no longer be read", async () => {
  await withServer(
    { "mcp.jsonc": { resources: [{ file: "a.md" }, { glob: "b/*" }] }, ...files },
    async (client, folder) => {
      assertEquals(await readText(client, "file:///a.md"), files["a.md"]);
      for (const path of ["a.md", "b/c.txt"]) await system("ln", "-sf", "/etc/hostname", `${folder}/${path}`);
      for (const path of ["a.md", "b/c.txt"]) {
        await assertRejects(() => client.readResource(`file:///${path}`), Error, sentence());
      }
    },
  );
});

function toSwapper(folder: string, ms: number): readonly string[] {
  const [runtime, ...words] = toCommand(new URL("../../support/swapper.ts", import.meta.url));
  // Deno's flags come after `run`.
  const flags = words[0] === "run" ? ["run", "-A", ...words.slice(1)] : words;
  return [runtime, ...flags, folder, `${ms}`];
}

for (const ms of [0, 2, 300]) {
  Deno.test(`no file outside of the folder is read while another program swaps links every ${ms} ms`, async () => {
    const swapped = {
      "in/sub/deep/a.txt": "inside",
      "in/file.txt": "inside",
      "out/deep/a.txt": "OUTSIDE",
      "out.txt": "OUTSIDE",
    };
    await withFolder(swapped, async (folder) => {
      await system("ln", "-s", `${folder}/out`, `${folder}/in/sub.link`);
      await system("ln", "-s", `${folder}/out.txt`, `${folder}/in/file.txt.link`);
      const inside = new Folder({ root: `${folder}/in`, maxBytes: 1000 });
      const counts = new Map<string, number>();
      for (const path of ["sub/deep/a.txt", "file.txt"]) {
        assertEquals(await inside.read(path), new TextEncoder().encode("inside"));
      }
      const swapper = startChild(toSwapper(`${folder}/in`, ms));
      try {
        await swapper.output.getReader().read();
        const end = Date.now() + 3000;
        const readAll = async () => {
          while (Date.now() < end) {
            for (const path of ["sub/deep/a.txt", "file.txt"]) {
              const found = await inside.read(path);
              const text = found instanceof Uint8Array ? new TextDecoder().decode(found) : "unavailable";
              counts.set(text, (counts.get(text) ?? 0) + 1);
            }
          }
        };
        await Promise.all(Array.from({ length: 8 }, readAll));
      } finally {
        swapper.kill();
        await swapper.exited;
      }
      assertEquals(
        [...counts.keys()].filter((text) => text !== "inside" && text !== "unavailable"),
        [],
        `${[...counts]}`,
      );
    });
  });
}

for (const ms of [0, 2]) {
  Deno.test(`no name or size from outside of the folder is listed while another program swaps links every ${ms} ms`, async () => {
    const swapped = {
      "in/sub/deep/a.txt": "inside",
      "in/sub/b.txt": "inside",
      "in/file.txt": "inside",
      "out/deep/a.txt": "OUTSIDE",
      "out/deep/secret.txt": "OUTSIDE",
      "out/b.txt": "OUTSIDE",
      "out/secret/secret.txt": "OUTSIDE",
      "out.txt": "OUTSIDE",
    };
    await withFolder(swapped, async (root) => {
      await system("ln", "-s", `${root}/out`, `${root}/in/sub.link`);
      await system("ln", "-s", `${root}/out.txt`, `${root}/in/file.txt.link`);
      const server = createServer({
        name: "local",
        version: "1.0.0",
        handlers: [folder({ path: `${root}/in`, uri: "in://", tools: true, watch: false })],
        limits: { calls: { timeoutMs: 60_000 } },
      });
      await using client = await connectTest(server);
      const seen = new Set<string>();
      const looks = [
        async () => (await client.listResources()).forEach(({ uri, size }) => seen.add(`${uri} ${size}`)),
        async (path = "sub") => void seen.add(textOf(await client.callTool("list", { path }))),
        async (path = "sub/deep") => void seen.add(textOf(await client.callTool("list", { path }))),
        async (path = "sub/deep/a.txt") => void seen.add(textOf(await client.callTool("list", { path }))),
        async () => {
          const ref = { type: "ref/resource", uri: "in://{+path}" } as const;
          seen.add((await client.complete(ref, { name: "path", value: "sub/" })).values.join());
        },
      ];
      const swapper = startChild(toSwapper(`${root}/in`, ms));
      try {
        await swapper.output.getReader().read();
        const end = Date.now() + 3000;
        await Promise.all(looks.map(async (look) => {
          while (Date.now() < end) await look();
        }));
      } finally {
        swapper.kill();
        await swapper.exited;
      }
      const outside = [...seen].filter((text) => /secret|\b7\b/.test(text));
      assertEquals(outside, [], [...seen].join("\n"));
    });
  });
}

Deno.test("the entries of a folder that changes constantly can be listed", async () => {
  await withFolder({ "sub/a.txt": "text" }, async (root) => {
    const inside = new Folder({ root, maxBytes: 1000 });
    for (let i = 0; i < 5; i++) {
      await writeFiles(root, { [`sub/${i}.txt`]: "", [`${i}.txt`]: "" });
      const [items, all] = [await inside.list(""), await inside.walk(100)];
      assert(!isUnavailable(items));
      assertEquals(items.length, i + 2);
      assertEquals(all.length, 2 * i + 3, "the walk waits until the folder has stopped changing");
    }
  });
});

Deno.test("a file in a folder that changes constantly can be read", async () => {
  await withFolder({ "a.txt": "text" }, async (folder) => {
    const inside = new Folder({ root: folder, maxBytes: 1000 });
    for (let i = 0; i < 5; i++) {
      await writeFiles(folder, { [`${i}.txt`]: "" });
      assertEquals(await inside.read("a.txt"), new TextEncoder().encode("text"));
    }
  });
});

Deno.test("the searches of one client run sequentially, and the number of waiting searches is limited", async () => {
  await withServer(files, async (client) => {
    const search = async () => toOutcome(await client.callTool("search", { query: "alpha" }));
    const outcomes = await Promise.all(Array.from({ length: 30 }, search));
    const rejected = outcomes.filter(({ isError }) => isError);
    assert(rejected.length > 0 && rejected.length < 30, `${rejected.length}`);
    for (const { text } of rejected) {
      assertEquals(text, sentence());
    }
    assertEquals((await search()).isError, false);
  }, "");
});

Deno.test("clients are notified when files are written, added and removed", async () => {
  const file = { resources: [{ file: "a.md" }, { glob: "g/**/*.md" }, { folder: "f" }] };
  await withServer(
    { "mcp.jsonc": file, "a.md": "1", "g/b.md": "1", "f/c.md": "1", "f/.x": "" },
    async (client, folder) => {
      const resourceSubscriptions = ["file:///a.md", "file:///g/b.md", "file:///f/c.md"];
      const subscription = await client.subscribe({ resourcesListChanged: true, resourceSubscriptions });
      const toShort = ({ method, params }: { method: string; params: Record<string, unknown> }) =>
        `${method.slice("notifications/resources/".length)} ${params.uri ?? ""}`.trim();
      let count = 0;
      /** Takes notifications until each expected notification has arrived. */
      const expect = async (...expected: string[]) => {
        const all: string[] = [];
        while (expected.some((each) => !all.includes(each))) {
          await until(() => subscription.received.length > count, expected.join());
          const list = await subscription.take(++count);
          all.push(toShort(list[count - 1]));
        }
        assertEquals([...new Set(all)].sort(), expected.sort());
      };
      // Fixed wait: the watcher of a folder does not report when it has read the first version.
      await new Promise((resolve) => setTimeout(resolve, 200)); // Wait until the watcher has listed the folder, because it does not detect earlier changes.
      await writeFiles(folder, { "a.md": "22" });
      await expect("updated file:///a.md");
      await writeFiles(folder, { "g/b.md": "22" });
      await expect("updated file:///g/b.md");
      await writeFiles(folder, { "f/c.md": "22" });
      await expect("updated file:///f/c.md");
      await writeFiles(folder, { "f/new/d.md": "1" });
      await expect("list_changed");
      assertStringIncludes((await listUris(client)).join(), "file:///f/new/d.md");
      await writeFiles(folder, { "g/new/d.md": "1" });
      await expect("list_changed");
      assertStringIncludes((await listUris(client)).join(), "file:///g/new/d.md");
      await system("rm", "-r", `${folder}/g/new`, `${folder}/f/new`);
      await expect("list_changed");
      await until(async () => (await listUris(client)).length <= 3, "the removed files are no longer listed");
      assertEquals(await listUris(client), resourceSubscriptions);
      // Many editors save a file by replacing it.
      await writeFiles(folder, { "a.tmp": "333" });
      await system("mv", `${folder}/a.tmp`, `${folder}/a.md`);
      const isUpdated = () =>
        subscription.received.slice(count).some((each) => toShort(each) === "updated file:///a.md");
      await until(isUpdated, "the client is notified of the replaced file");
    },
  );
});

Deno.test("a missing folder is an error", async () => {
  await withFolder({}, async (folder) => {
    const error = await assertRejects(() => load(`${folder}/gone`), Error);
    assertEquals(error.message, sentence(`${folder}/gone`));
  });
});

for (
  const [pattern, yes, no] of [
    ["*.md", ["a.md", "é.md"], ["a.mdx", "b/a.md", ".md", ".a.md", "amd"]],
    ["**/*.md", ["a.md", "b/a.md", "b/c/a.md"], [".b/a.md", "b/.a.md", "a.txt"]],
    ["b/**", ["b/a", "b/c/a"], ["b/.a", "c/b/a", "a"]],
    ["**", ["a", "a/b"], [".a", "a/.b/c"]],
    ["a/**/b/*.t?t", ["a/b/x.txt", "a/c/d/b/x.tst"], ["a/x.txt", "a/b/c/x.txt"]],
    ["{a,b/c}/*.{x,y}", ["a/1.x", "b/c/1.y"], ["b/1.x", "a/1.z"]],
    [".*", [".a"], ["a"]],
    [".a/**/.b", [".a/.b", ".a/c/.b"], [".a/.c/.b"]],
    ["a+(b)[c].^$|d", ["a+(b)[c].^$|d"], ["aabc"]],
    ["./a//b", ["a/b"], ["a"]],
    ["**/a/**/b", ["a/b", "x/a/a/y/b"], ["b", "a"]],
  ] as const
) {
  Deno.test(`the pattern ${pattern} matches ${yes.join(", ") || "nothing"}`, () => {
    const matches = toMatcher(pattern);
    assertEquals(yes.filter((path) => !matches(path)), []);
    assertEquals(no.filter(matches), []);
  });
}

Deno.test("matching a pattern with many wildcards takes at most linear time in the lengths of the pattern and the path", () => {
  const matches = toMatcher(`${"*a".repeat(400)}/${"**/".repeat(200)}x`, { matchDots: true });
  assertEquals(matches(`${"a".repeat(5000)}b/${"y/".repeat(1000)}z`), false);
});
