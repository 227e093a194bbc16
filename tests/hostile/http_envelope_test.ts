// Invalid headers and `_meta` in modern requests.
import { assert, assertEquals } from "@std/assert";
import { sentence } from "../support/messages.ts";
import {
  type Case,
  cases,
  type HeaderLines,
  type Json,
  LEGACY,
  META,
  MODERN,
  startFixture,
  toMessage,
  toMeta,
} from "./http.ts";

const mismatch = { status: 400, code: -32020, id: 1 };
const invalid = { status: 400, code: -32602, id: 1 };
const unsupported = { status: 400, code: -32022, id: 1 };
const version = META + "protocolVersion";
const utf8 = (text: string) => new TextEncoder().encode(text);
const encoded = (text: string) => `=?base64?${utf8(text).toBase64()}?=`;

const text = (change: Json = {}, params: Json = {}, meta: Json = {}) =>
  JSON.stringify(toMessage("modern", change, params, meta));

/** A request for a prompt whose name must be encoded in a header. */
const greeting = {
  body: text({ method: "prompts/get" }, { name: "gr\u00fcezi", arguments: undefined }),
  headers: (name: string): HeaderLines => ({ "mcp-method": "prompts/get", "mcp-name": name }),
};

cases("headers must match the method and name in the body", {}, () => [
  ...["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"].map((header) => ({
    name: `no ${header}`,
    headers: { [header.toLowerCase()]: null },
    ...mismatch,
    says: sentence(header),
  })),
  {
    name: "a method that only this revision defines, without a header or _meta",
    headers: { "mcp-protocol-version": null, "mcp-method": null, "mcp-name": null },
    body: '{"jsonrpc":"2.0","id":1,"method":"server/discover"}',
    ...invalid,
    says: "protocolVersion",
  },
  {
    name: "no headers: _meta alone makes it a request without a session",
    headers: { "mcp-protocol-version": null, "mcp-method": null, "mcp-name": null },
    ...mismatch,
  },
  ...["Tools/Call", "TOOLS/CALL", "tools/list", "tools/call2", "tools", "", "tools/call, tools/call"].map((method) => ({
    name: `Mcp-Method ${JSON.stringify(method)}`,
    headers: { "mcp-method": method },
    ...mismatch,
    says: sentence("Mcp-Method", JSON.stringify(method)),
  })),
  { name: "Mcp-Method twice", headers: { "mcp-method": ["tools/call", "tools/call"] }, ...mismatch },
  { name: "Mcp-Method is never encoded", headers: { "mcp-method": encoded("tools/call") }, ...mismatch },
  ...["Good", "GOOD", "good2", "goo", "go od", "", "good, good"].map((name) => ({
    name: `Mcp-Name ${JSON.stringify(name)}`,
    headers: { "mcp-name": name },
    ...mismatch,
  })),
  { name: "Mcp-Name twice", headers: { "mcp-name": ["good", "good"] }, ...mismatch },
  { name: "Mcp-Name encoded", headers: { "mcp-name": encoded("good") }, status: 200 },
  ...[
    "=?base64?Z29vZA?=", // no padding
    "=?base64?Z29vZB==?=", // stray bits
    "=?BASE64?Z29vZA==?=",
    "=?Base64?Z29vZA==?=",
    "=?base64?Z29v ZA==?=",
    "=?base64?Z29vZA==",
    "=?base64??=",
    "=?base64?Z29v!A==?=",
    "=?utf-8?B?Z29vZA==?=",
    encoded(encoded("good")),
    "g\xf6\xf6d",
    "good\xff",
    "good\xa0",
  ].map((name) => ({ name: `Mcp-Name ${JSON.stringify(name)}`, headers: { "mcp-name": name }, ...mismatch })),
  {
    name: "the URL-safe alphabet",
    body: text({}, { name: "\u00ff\u00fe?>" }),
    headers: { "mcp-name": encoded("\u00ff\u00fe?>").replaceAll("+", "-").replaceAll("/", "_") },
    ...mismatch,
  },
  { name: "a name that needs encoding", ...greeting, headers: greeting.headers(encoded("gr\u00fcezi")), status: 200 },
  { name: "the same name as raw Latin-1", ...greeting, headers: greeting.headers("gr\xfcezi"), ...mismatch },
  { name: "the same name as raw UTF-8", ...greeting, headers: greeting.headers("gr\xc3\xbcezi"), ...mismatch },
  {
    name: "the same name in another Unicode normal form",
    ...greeting,
    headers: greeting.headers(encoded("gru\u0308ezi")),
    ...mismatch,
  },
  {
    name: "a name that looks encoded has to be encoded",
    body: text({}, { name: "=?base64?Z29vZA==?=" }),
    headers: { "mcp-name": "=?base64?Z29vZA==?=" },
    ...mismatch,
  },
  { name: "60 KB", headers: { "mcp-name": "x".repeat(60_000) }, ...mismatch, dropped: { bun: 431 } },
  ...["  good", "good  ", "\tgood\t", " \t good \t "].map((name) => ({
    name: `Mcp-Name ${JSON.stringify(name)}: surrounding spaces are not part of it`,
    headers: { "mcp-name": name },
    status: 200,
  })),
  {
    name: "inner spaces are part of it",
    body: text({}, { name: "a  b" }),
    headers: { "mcp-name": "a b" },
    ...mismatch,
  },
  {
    name: "inner spaces that match",
    body: text({}, { name: "a  b" }),
    headers: { "mcp-name": "a  b" },
    ...invalid,
    says: sentence("a  b"),
  },
  {
    name: "leading and trailing spaces of a name have to be encoded",
    body: text({}, { name: " good" }),
    headers: { "mcp-name": " good" },
    ...mismatch,
  },
]);

cases("parameters repeated in headers must match the arguments", {}, () => {
  const call = (args: Json, headers: HeaderLines) => ({
    body: text({}, { name: "region", arguments: args }),
    headers: { "mcp-name": "region", ...headers },
  });
  return [
    { name: "a parameter repeated", ...call({ region: "eu" }, { "mcp-param-region": "eu" }), status: 200 },
    { name: "a header name in capitals", ...call({ region: "eu" }, { "Mcp-Param-REGION": "eu" }), status: 200 },
    {
      name: "a parameter encoded",
      ...call({ region: "e\u00fc" }, { "mcp-param-region": encoded("e\u00fc") }),
      status: 200,
    },
    {
      name: "a parameter as raw Latin-1",
      ...call({ region: "e\u00fc" }, { "mcp-param-region": "e\xfc" }),
      ...mismatch,
    },
    { name: "a parameter without its header", ...call({ region: "eu" }, {}), ...mismatch },
    { name: "a parameter in different case", ...call({ region: "eu" }, { "mcp-param-region": "EU" }), ...mismatch },
    { name: "a parameter twice", ...call({ region: "eu" }, { "mcp-param-region": ["eu", "eu"] }), ...mismatch },
    { name: "a header without its parameter", ...call({}, { "mcp-param-region": "eu" }), ...mismatch },
    { name: "a header for null", ...call({ region: null }, { "mcp-param-region": "null" }), ...mismatch },
    { name: "an empty string is a parameter", ...call({ region: "" }, { "mcp-param-region": "" }), status: 200 },
    ...["4.2e1", "42.0"].map((count) => ({
      name: `the number 42 written as ${count}`,
      ...call({ count: 42 }, { "mcp-param-count": count }),
      status: 200,
    })),
    ...["43", "", " ", "0x2a", "0b101010", "NaN", "4 2", "Infinity", "+42", "42n"].map((count) => ({
      name: `the number ${JSON.stringify(count)}`,
      ...call({ count: 42 }, { "mcp-param-count": count }),
      ...mismatch,
    })),
    { name: "an empty header is not the number 0", ...call({ count: 0 }, { "mcp-param-count": "" }), ...mismatch },
    { name: "a parameter named like a property that every object inherits", ...call({}, {}), status: 200 },
    { name: "the same parameter, given", ...call({ constructor: "x" }, { "mcp-param-built": "x" }), status: 200 },
    { name: "the same parameter, without its header", ...call({ constructor: "x" }, {}), ...mismatch },
    ...[{ toString: "eu" }, { toString: null, valueOf: null }, ["eu"], true].map((region) => ({
      name: `a parameter that is ${JSON.stringify(region)} instead of a string`,
      ...call({ region }, { "mcp-param-region": "eu" }),
      ...mismatch,
    })),
    { name: "a header that no schema names", ...call({}, { "mcp-param-__proto__": "x" }), status: 200 },
  ];
});

cases("the version in the header must match the body", {}, () => [
  { name: "an old version in the header", headers: { "mcp-protocol-version": LEGACY }, ...mismatch },
  { name: "a future version in the header", headers: { "mcp-protocol-version": "2026-07-29" }, ...mismatch },
  { name: "an old version in the body", body: text({}, {}, { [version]: LEGACY }), ...mismatch },
  {
    name: "an old version in both",
    headers: { "mcp-protocol-version": LEGACY },
    body: text({}, {}, { [version]: LEGACY }),
    ...unsupported,
    says: `"supported":["${MODERN}"]`,
  },
  { name: "the version twice in the header", headers: { "mcp-protocol-version": [MODERN, MODERN] }, ...mismatch },
  {
    name: "an additional session header changes nothing",
    headers: { "mcp-session-id": "garbage", "last-event-id": "x" },
    status: 200,
    has: { "mcp-session-id": null },
  },
  ...["v999.0.0", "2099-01-01", "x".repeat(5000)].map((wanted) => ({
    name: `${wanted.slice(0, 20)} in both`,
    headers: { "mcp-protocol-version": wanted },
    body: text({}, {}, { [version]: wanted }),
    ...unsupported,
  })),
]);

const params = (value: unknown) => JSON.stringify({ ...toMessage("modern"), params: value });
const meta = (value: unknown) => params({ name: "good", arguments: {}, _meta: value });

cases("a request must have a valid envelope", {}, () => [
  { name: "no params", body: params(undefined), ...invalid },
  ...[null, [], [{}], "x", 5].map((value) => ({
    name: `params ${JSON.stringify(value)}`,
    body: params(value),
    ...invalid,
  })),
  { name: "a look-alike of the key params", body: text().replace('"params"', '"param\u017f"'), ...invalid },
  { name: "no _meta", body: meta(undefined), ...invalid },
  ...[null, [], "x", 5, {}].map((value) => ({ name: `_meta ${JSON.stringify(value)}`, body: meta(value), ...invalid })),
  { name: "no protocolVersion", body: text({}, {}, { [version]: undefined }), ...invalid },
  { name: "no clientCapabilities", body: text({}, {}, { [META + "clientCapabilities"]: undefined }), ...invalid },
  ...[null, [], "x", 5].map((value) => ({
    name: `clientCapabilities ${JSON.stringify(value)}`,
    body: text({}, {}, { [META + "clientCapabilities"]: value }),
    ...invalid,
  })),
  { name: "no clientInfo", body: text({}, {}, { [META + "clientInfo"]: undefined }), status: 200 },
  ...["clientInfo", "logLevel"].map((name) => ({
    name: `${name} null`,
    body: text({}, {}, { [META + name]: null }),
    status: 200,
  })),
  { name: "progressToken null", body: text({}, {}, { progressToken: null }), status: 200 },
  ...[[], "x", 5, {}, { name: "x" }, { name: "x", version: 1 }].map((value) => ({
    name: `clientInfo ${JSON.stringify(value)}`,
    body: text({}, {}, { [META + "clientInfo"]: value }),
    ...invalid,
  })),
  ...[20260728, null, {}, [], true].map((value) => ({
    name: `protocolVersion ${JSON.stringify(value)}`,
    body: text({}, {}, { [version]: value }),
    ...invalid,
  })),
  ...[`${MODERN} `, ` ${MODERN}`, "2026-7-28", "2026-07-28T00:00Z", ""].map((value) => ({
    name: `protocolVersion ${JSON.stringify(value)} differs from the header`,
    body: text({}, {}, { [version]: value }),
    ...mismatch,
  })),
  ...["loud", "", "INFO", 5, {}, "constructor"].map((value) => ({
    name: `logLevel ${JSON.stringify(value)}`,
    body: text({}, {}, { [META + "logLevel"]: value }),
    ...invalid,
  })),
  ...[{}, [], 1.5, true, "p".repeat(257)].map((value) => ({
    name: `progressToken ${JSON.stringify(value)}`,
    body: text({}, {}, { progressToken: value }),
    ...invalid,
  })),
  ...["", 0, -1, "p".repeat(256)].map((value) => ({
    name: `progressToken ${JSON.stringify(value).slice(0, 20)} is valid`,
    body: text({}, {}, { progressToken: value }),
    status: 200,
  })),
]);

Deno.test("unknown keys of _meta are ignored, and the response does not contain them", async (t) => {
  await using fixture = await startFixture();
  const rows: readonly (Case & { readonly marker: string })[] = [
    {
      name: "10,000 unknown keys",
      marker: "unknown-1234",
      body: text({}, {}, Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`unknown-${i}`, i]))),
      status: 200,
    },
    {
      name: "unknown keys under the reserved prefix",
      marker: "surprise",
      body: text({}, {}, { [META + "surprise"]: 1, "mcp.dev/surprise": 1, "modelcontextprotocol.io/surprise": 1 }),
      status: 200,
    },
    { name: "a value of 1 MB", marker: "yyyyyyyy", body: text({}, {}, { x: "y".repeat(1_000_000) }), status: 200 },
    {
      name: "__proto__ and constructor",
      marker: "polluted",
      body: text().replace('"_meta":{', '"_meta":{"__proto__":{"polluted":1},"constructor":{"polluted":1},'),
      status: 200,
    },
    {
      name: "the server's own key",
      marker: "forged",
      body: text({}, {}, { [META + "serverInfo"]: { name: "forged" }, [META + "subscriptionId"]: "forged" }),
      status: 200,
    },
  ];
  for (const { marker, ...each } of rows) {
    await t.step(`a request with ${each.name} in _meta is served`, async () => {
      await fixture.check(each);
      const answer = await fixture.send(each);
      assert(!answer?.body.includes(marker), "the response echoes it");
      assertEquals("polluted" in {}, false);
      fixture.ran.length = 0;
    });
  }
  const wrong: Case = {
    name: "a client's own prototype is not client info",
    body: JSON.stringify({ ...toMessage("modern"), params: { name: "good", _meta: toMeta() } })
      .replace('{"name":"hostile","version":"1"}', '{"__proto__":{"name":"hostile","version":"1"}}'),
    ...invalid,
  };
  await t.step(wrong.name, () => fixture.check(wrong));
});
