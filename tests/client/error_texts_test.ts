// The texts of errors: every value is visible, no secret is repeated, and text of a server cannot forge further lines.
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { connect, type ConnectOptions } from "../../src/client/client.ts";
import { createRequestHandler } from "../../src/client/server_requests.ts";
import { skillsOf } from "../../src/extensions/skills/client/skills.ts";
import { TaskError } from "../../src/extensions/tasks/client/tasks.ts";
import { oauth } from "../../src/auth/oauth/oauth.ts";
import { SignInError } from "../../src/client/oauth/errors.ts";
import { sentence } from "../support/messages.ts";
import { discovered, fakeHttp, ok, url } from "./fakes.ts";

const fails = (target: string, options?: ConnectOptions) => assertRejects(() => connect(target, options), Error);

Deno.test("the error for a target or a root without a value shows that the value is empty", async () => {
  assertEquals((await fails("")).message, sentence('Cannot connect to ""'));
  assertEquals((await fails("  ")).message, sentence('Cannot connect to "  "'));
  await assertRejects(() => connect({ command: "" }), TypeError, sentence("command"));
  for (
    const [root, shown] of [[{ uri: "" }, 'root ""'], [{}, "root undefined"], [{ uri: null }, "root null"]] as const
  ) {
    assertThrows(() => createRequestHandler({ roots: [root as { uri: string }] }), TypeError, sentence(shown));
  }
});

Deno.test("no error repeats the user name or the password of a URL", async () => {
  const lost = () => Promise.reject(new TypeError("refused for http://zoe:s3cret@a.test/mcp"));
  const moved = (location: string) => () => Promise.resolve(new Response(null, { status: 302, headers: { location } }));
  const errors = [
    await fails("ftp://zoe:s3cret@a.test/"),
    await fails("http://a.test/mcp", { fetch: moved("https://zoe:s3cret@b.test/") }),
    assertThrows(() => oauth({ resource: "https://zoe:s3cret@a.test/mcp", issuers: ["https://b.test"] }), TypeError),
    assertThrows(() => oauth({ resource: "https://a.test/mcp", issuers: ["https://zoe:s3cret@b.test"] }), TypeError),
  ];
  for (const { message } of errors) assertEquals(message, sentence(".test"));
  // Node makes no request for such a URL, so the sentence is another one.
  for (const fetch of [lost, moved("/other"), moved("http://[")]) {
    errors.push(await fails("http://zoe:s3cret@a.test/mcp", { fetch }));
  }
  for (const { message } of errors) assert(!message.includes("s3cret") && !message.includes("zoe"), message);
});

Deno.test("an error states once what cannot be done", async () => {
  const asked = (params: object, method = "elicitation/create") =>
    fakeHttp((heard) =>
      heard.method === "server/discover"
        ? discovered(heard)
        : ok(heard, { resultType: "input_required", inputRequests: { q: { method, params } } })
    );
  const options = { onElicit: () => ({ action: "cancel" as const }), onSample: () => Promise.reject(new Error("no")) };
  for (
    const [server, ...names] of [
      [asked({}), "elicitation/create", "message"],
      [asked({ mode: "url", url: "x" }), "elicitation/create"],
      [asked({}, "sampling/createMessage"), "sampling/createMessage", "messages"],
      [asked({}, "roots/list"), "roots/list"],
      [asked({}, "odd/method"), "odd/method"],
    ] as const
  ) {
    await using client = await connect(url, { fetch: server.fetch, ...options });
    const { message } = await assertRejects(() => client.callTool("t"), Error);
    assertEquals(message.match(/cannot/gi)?.length, 1, message);
    assertEquals(message, sentence(...names));
  }
});

Deno.test("text of a server in an error stays on one line and is printable", async () => {
  const evil = "x\r\nCannot trust\u001b[31m\u202e";
  const server = fakeHttp((heard) => {
    if (heard.method === "server/discover") return discovered(heard);
    if (heard.method === "tools/call") return ok(heard, { resultType: evil });
    if (heard.method === "prompts/get") {
      return ok(heard, { resultType: "input_required", inputRequests: { [evil]: { method: 5 } } });
    }
    if (heard.method === "completion/complete") {
      return Response.json({ jsonrpc: "2.0", id: evil, result: {} });
    }
    const skill = { uri: `skill://pdf/SKILL.md${evil}/SKILL.md`, frontmatter: { name: "pdf", description: "d" } };
    if (heard.method === "skills/get") return ok(heard, { skill });
    const name = { uri: "skill://pdf/SKILL.md", frontmatter: { name: evil, description: "d" } };
    return ok(heard, { skills: [skill, name], tools: [{ name: evil, inputSchema: 5 }, { name: "b", title: [evil] }] });
  });
  const texts: string[] = [];
  await using client = await connect(url, { fetch: server.fetch, onWarning: (text) => texts.push(text) });
  await client.listTools();
  const skills = skillsOf(client, { onInvalid: ({ message }) => texts.push(message) });
  assertEquals(await skills.list(), []);
  const failing = [
    () => client.callTool("t"),
    () => client.getPrompt("p"),
    () => client.complete({ type: "ref/prompt", name: "p" }, { name: "a", value: "" }),
    () => skills.get("skill://pdf/SKILL.md"),
  ];
  for (const fail of failing) texts.push((await assertRejects(fail, Error)).message);
  const old = fakeHttp((heard) => ok(heard, { protocolVersion: evil, supportedVersions: [evil], capabilities: {} }));
  texts.push((await fails(url, { fetch: old.fetch })).message);
  texts.push((await fails(url, { fetch: old.fetch, era: "legacy" })).message);
  texts.push(new TaskError(evil, `Cannot read ${evil}`).message, new SignInError(`Cannot sign in at ${evil}`).message);
  assertEquals(texts.length, 13);
  // deno-lint-ignore no-control-regex -- the characters that a server could use to forge lines.
  for (const text of texts) assert(!/[\u0000-\u001f\u202e]/.test(text), JSON.stringify(text));
});
