// The client lists and reads skills, and refuses files that do not match their entries.
import { createHash } from "node:crypto";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { extension, resourceProvider } from "../../mod.ts";
import { SkillError, skillsOf } from "../../src/extensions/skills/client/skills.ts";
import { skills } from "../../src/extensions/skills/skills.ts";
import { behaviour } from "../support/behaviour.ts";
import { sentence } from "../support/messages.ts";

const digest = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const URI = "skill://pdf/SKILL.md";
const FORM = "skill://pdf/form.md";
const texts: Record<string, string> = {
  [URI]: "---\nname: pdf\ndescription: Reads PDF\ntags: [a, { b: 1 }]\n---\nBody\n",
  [FORM]: "Form ä\n",
};
const describe = (uri: string, text = texts[uri]) => ({
  uri,
  digest: digest(text),
  size: new TextEncoder().encode(text).length,
});
const good = {
  uri: URI,
  frontmatter: { name: "pdf", description: "Reads PDF", tags: ["a", { b: 1 }] },
  resources: [describe(URI), describe(FORM)],
};

/** URIs that begin with the skill's folder as text, but are not a file in it for every program that reads them. */
const OUTSIDE = [
  "skill://pdf/../x",
  "skill://pdf/a/../../x",
  "skill://pdf/..",
  "skill://pdf/./form.md",
  "skill://pdf/%2e%2e/x",
  "skill://pdf/.%2E/x",
  "skill://pdf/..%20/x",
  "skill://pdf/%20../x",
  "skill://pdf/a%2f..%2f..%2fx",
  "skill://pdf/..\\x",
  "skill://pdf/a%5c..%5cx",
  "skill://pdf//etc/passwd",
  "skill://pdf/a//b",
  "skill://pdf/a/",
  "skill://pdf/",
  "skill://pdf/a\0.md",
  "skill://pdf/a%00.md",
  "skill://pdf/a%0a.md",
  "skill://pdf/a\tb",
  "skill://pdf/a b",
  "skill://pdf/%zz",
  "skill://pdf/%c0%ae%c0%ae/x",
  "skill://pdf/a?b",
  "skill://pdf/a#b",
  "skill://pdf/d:x.md",
  "skill://pdf/D%3A/x.md",
  "skill://pdf/a/%64%3ax.md",
  "skill://pdf/form.md:stream",
  "skill://pdf/....",
  "skill://pdf/.%20./x",
  "skill://pdf/..%20.%20/x",
  "skill://pdf/a/..%C2%A0./x",
  // Names that Windows or macOS reads as another name, or as a device.
  "skill://pdf/form.md.",
  "skill://pdf/a.%20/x.md",
  "skill://pdf/a%20",
  "skill://pdf/a%E3%80%80",
  "skill://pdf/SKILL%E2%80%8B.md",
  "skill://pdf/SKILL\u200b.md",
  "skill://pdf/%EF%BB%BFSKILL.md",
  "skill://pdf/a\ud800.md",
  "skill://pdf/a%EF%80%A2b.md",
  ...["NUL", "nul.txt", "Con", "aux%20.md", "a/prn.tar.gz", "COM1", "lpt9.md", "com%C2%B9", "CONIN$", "clock$.md"].map(
    (name) => `skill://pdf/${name}`,
  ),
  "skill://pdf/SKILL~1.MD",
  "skill://pdf/refere~1/x.md",
];

/** URIs of files that are the same file as `form.md` or `SKILL.md` on some operating systems. */
const DOUBLE = [
  "skill://pdf/%66orm.md",
  "skill://pdf/FORM.md",
  "skill://pdf/skill.md",
  "skill://pdf/Skill.MD",
  "skill://pdf/\u017fkill.md",
  "skill://pdf/s\u212aill.md",
  "skill://pdf/SKILL%EF%B8%8F.md",
  "skill://pdf/form.md/x",
  "skill://pdf/Form.MD/a/b",
];

/** Creates handlers that serve the given entries and files. `reads` records the URIs of read files. */
function serve(entries: readonly unknown[], files: Readonly<Record<string, string>> = texts) {
  const reads: string[] = [];
  const own = extension({
    id: "io.modelcontextprotocol/skills",
    sessions: true,
    undeclared: true,
    methods: {
      "skills/list": { run: () => ({ skills: entries }) },
      "skills/get": { run: () => ({ skill: entries[0] }) },
    },
  });
  const provider = resourceProvider({
    scheme: "skill",
    name: "skills",
    read(uri) {
      reads.push(uri);
      return [{ uri, text: files[uri] ?? "none" }];
    },
  });
  return { handlers: [own, provider], reads };
}

behaviour("a client lists and reads the skills of a folder", async (connect) => {
  const dir = new URL("../../examples/skills", import.meta.url);
  const { client } = await connect({ handlers: [skills({ dir })] });
  const office = skillsOf(client, { server: "office" });
  const all = await office.list();
  assertEquals(all.map(({ name, key }) => [name, key]), [
    ["notes-style", '["office","skill://notes-style/SKILL.md"]'],
    ["plan-week", '["office","skill://plan-week/SKILL.md"]'],
  ]);
  const [style] = all;
  assertEquals(await office.get(style.uri), style);
  const { text, bytes } = await office.read(style);
  assert(text?.startsWith("---\nname: notes-style"));
  assert(style.files !== "dynamic");
  for (const { uri, size } of style.files) assertEquals((await office.read(style, uri)).bytes.length, size);
  assertEquals(bytes.length, style.files[0].size);
  const other = "skill://plan-week/SKILL.md";
  await assertRejects(() => office.read(style, other), SkillError, sentence(other));
});

behaviour("the client reads files only on request, and verifies each file", async (connect) => {
  const { handlers, reads } = serve([good]);
  const { client } = await connect({ handlers });
  const own = skillsOf(client);
  const [skill] = await own.list();
  assertEquals(reads, []);
  assertEquals((await own.read(skill, FORM)).text, texts[FORM]);
  assertEquals(reads, [FORM]);
  const wrong: readonly (readonly [object, Record<string, string>, ...names: string[]])[] = [
    [good, { ...texts, [URI]: texts[URI].replace("Body", "Evil") }, "digest"],
    [{ ...good, frontmatter: { ...good.frontmatter, tags: ["a", { b: 2 }] } }, texts],
    [good, { ...texts, [URI]: `${texts[URI]}more` }, String(texts[URI].length), String(texts[URI].length + 4)],
    [{ ...good, frontmatter: { ...good.frontmatter, more: 1 } }, texts],
  ];
  for (const [entry, files, ...names] of wrong) {
    const { client } = await connect({ handlers: serve([entry], files).handlers });
    const own = skillsOf(client);
    const [skill] = await own.list();
    await assertRejects(() => own.read(skill), SkillError, sentence(URI, ...names));
  }
});

behaviour("the client reads files of a dynamic skill only within the skill's folder", async (connect) => {
  const { client } = await connect({ handlers: serve([{ ...good, resources: "dynamic" }]).handlers });
  const own = skillsOf(client);
  const skill = await own.get(URI);
  assertEquals((await own.read(skill)).text, texts[URI]);
  for (const other of ["skill://other/SKILL.md", "skill://pdf/%53KILL.md", "skill://pdf/skill.md", ...OUTSIDE]) {
    await assertRejects(() => own.read(skill, other), SkillError, sentence());
  }
}, { transports: ["memory"] });

behaviour("the client refuses file names that a program could write outside of the skill's folder", async (connect) => {
  for (const uri of OUTSIDE) {
    const { client } = await connect({
      handlers: serve([{ ...good, resources: [describe(URI), { ...describe(FORM), uri }] }]).handlers,
    });
    await assertRejects(() => skillsOf(client).get(URI), SkillError, sentence(URI));
  }
  const inside = [
    "skill://pdf/a/..b",
    "skill://pdf/...md",
    "skill://pdf/%C3%A4.md",
    "skill://pdf/a%20b.md",
    "skill://pdf/%20a.md",
    "skill://pdf/null.md",
    "skill://pdf/com10",
    "skill://pdf/a~b.md",
    "skill://pdf/%F0%9F%98%80.md",
  ];
  const resources = [describe(URI), ...inside.map((uri) => ({ ...describe(FORM), uri }))];
  const { client } = await connect({ handlers: serve([{ ...good, resources }]).handlers });
  assertEquals(Object((await skillsOf(client).get(URI)).files).length, 1 + inside.length);
  for (const uri of DOUBLE) {
    const twice = [describe(URI), describe(FORM), { ...describe(FORM), uri: "skill://pdf/form-2.md" }];
    const double = await connect({
      handlers: serve([{ ...good, resources: [...twice, { ...describe(FORM), uri }] }]).handlers,
    });
    await assertRejects(() => skillsOf(double.client).get(URI), SkillError, sentence(URI));
  }
  // One name in both Unicode normalizations.
  const names = ["\u00e4.md", "a\u0308.md"].map((name) => ({ ...describe(FORM), uri: `skill://pdf/${name}` }));
  const both = await connect({ handlers: serve([{ ...good, resources: [describe(URI), ...names] }]).handlers });
  await assertRejects(() => skillsOf(both.client).get(URI), SkillError, sentence(URI));
}, { transports: ["memory"] });

behaviour("the client refuses skills whose own path is ambiguous", async (connect) => {
  for (
    const folder of [
      "skill://a/../pdf",
      "skill://a/%2e%2E/pdf",
      "skill://a//pdf",
      "skill://a/.\\pdf",
      "skill://a/b%2fpdf",
      "skill://a/%zz/pdf",
      "skill://c:/pdf",
      "skill://a/.%20./pdf",
      "skill://nul/pdf",
      "skill://a./pdf",
    ]
  ) {
    const uri = `${folder}/SKILL.md`;
    const { client } = await connect({ handlers: serve([{ ...good, uri, resources: "dynamic" }]).handlers });
    await assertRejects(() => skillsOf(client).get(uri), SkillError, sentence());
  }
}, { transports: ["memory"] });

behaviour("the client omits invalid entries from the list", async (connect) => {
  const [own, form] = good.resources;
  const entries = [
    [null, "uri"],
    [{ ...good, uri: "skill://pdf/README.md" }, "skill://pdf/README.md", "/SKILL.md"],
    [{ ...good, uri: "skill://pdf/SKILL.md\n/SKILL.md" }, "skill://pdf/SKILL.md", "/SKILL.md"],
    [{ ...good, uri: "skill://other/SKILL.md" }, "skill://other/SKILL.md", "pdf"],
    [{ ...good, frontmatter: undefined }],
    [{ ...good, frontmatter: { name: "Pdf", description: "x" } }, "name", 64],
    [{ ...good, frontmatter: { name: "pdf" } }, "description"],
    [{ ...good, resources: undefined }, "resources"],
    [{ ...good, resources: [form] }, "SKILL.md"],
    [{ ...good, resources: "all" }, "resources"],
    [{ ...good, resources: [own, own] }, own.uri],
    [{ ...good, resources: [own, { ...form, uri: "skill://pdfs/a" }] }, "skill://pdfs/a"],
    [{ ...good, resources: [own, { ...form, digest: form.digest.toUpperCase() }] }, form.uri, "digest"],
    [{ ...good, resources: [own, { ...form, size: -1 }] }, form.uri, "size"],
    [{ ...good, resources: [own, { ...form, size: 16_777_217 }] }, 16777216],
    [{ ...good, resources: Array(513).fill(own) }, 512],
  ] as const;
  const errors: SkillError[] = [];
  const { client } = await connect({ handlers: serve([...entries.map(([entry]) => entry), good]).handlers });
  const listed = await skillsOf(client, { onInvalid: (error) => errors.push(error) }).list();
  assertEquals(listed.map(({ uri }) => uri), [URI]);
  assertEquals(errors.length, entries.length);
  for (const [at, [, ...names]] of entries.entries()) assertEquals(errors[at].message, sentence(...names));
  await assertRejects(() => skillsOf(client).get(URI), SkillError);
}, { transports: ["memory"] });
