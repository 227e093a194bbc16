// Unknown options, which code without a type check may contain. Every factory refuses them, in development and in
// production.
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { z } from "zod";
import config from "../../deno.json" with { type: "json" };
import {
  createServer,
  extension,
  group,
  type Middleware,
  mount,
  prompt,
  promptProvider,
  resource,
  resourceProvider,
  service,
  tool,
  toolProvider,
  transform,
} from "../../mod.ts";
import { app, ui } from "../../src/extensions/apps/apps.ts";
import { apiKey, authScheme, basicAuth, customAuth, elicitationLinks, refuseRequest } from "../../src/auth/auth.ts";
import { clientCredentialsToken, exchangeToken, oauth } from "../../src/auth/oauth/oauth.ts";
import { clientExtension, connect as connectClient, lock } from "../../src/client/client.ts";
import { discover } from "../../src/ready/discovery/discovery.ts";
import { media, resourceLink } from "../../src/library.ts";
import { audit as auditCalls, health, jsonLog, prometheus, record } from "../../src/observe/observe.ts";
import { openTelemetry, openTelemetryClient } from "../../src/observe/opentelemetry.ts";
import {
  argument,
  cache,
  circuit,
  guard,
  idempotent,
  intent,
  member,
  planned,
  quota,
  retry,
} from "../../src/layers/layers.ts";
import { openapi } from "../../src/ready/openapi/openapi.ts";
import { proxy } from "../../src/proxy/proxy.ts";
import { asTools, file, folder, httpResource, httpTool, sendRequest } from "../../src/ready/ready.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { denoKvStore } from "../../src/stores/deno_kv.ts";
import { postgresStore } from "../../src/stores/postgres/postgres.ts";
import { redisStore } from "../../src/stores/redis/redis.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { customStore, memoryStore } from "../../src/stores/stores.ts";
import { connectTest, fakeContext, fakeGitHub, fakeGoogle, replay, testTask } from "../../src/testing/testing.ts";
import { testStore } from "../../src/testing/test_store.ts";
import { serve } from "../../src/server/serve.ts";
import { httpSse } from "../../src/server/transports/http/sse_2024.ts";
import { serveStdio } from "../../src/server/transports/stdio/stdio.ts";
import { webSocket } from "../../src/server/transports/websocket.ts";
import {
  clientCredentials,
  enterpriseSignIn,
  loopback,
  memoryTokens,
  pageSignIn,
  signIn,
  workloadIdentity,
} from "../../src/client/oauth/oauth.ts";
import { skillsOf } from "../../src/extensions/skills/client/skills.ts";
import { taskClient } from "../../src/extensions/tasks/client/tasks.ts";
import { systemClock } from "../../src/core/timers.ts";
import { skills } from "../../src/extensions/skills/skills.ts";
import { task } from "../../src/extensions/tasks/tasks.ts";
import { worker } from "../../src/ready/worker/worker.ts";
import { anyone, entra, github, google, oauth2, oauthProxy, oidc } from "../../src/auth/oauth/proxy/proxy.ts";
import { webMcp } from "../../src/web/web.ts";
import { APP, Tab } from "../client/oauth/tab.ts";
import { behaviour } from "../support/behaviour.ts";
import { random } from "../support/random.ts";
import { collectWarnings } from "../support/warnings.ts";
import { sentence } from "../support/messages.ts";
import { closeAtEnd } from "../support/running.ts";

/** Options without a type check, as in plain JavaScript. */
// deno-lint-ignore no-explicit-any
type Untyped = any;

const text = () => "";
const about = { name: "s", version: "1.0.0" };
const pass: Middleware = (_call, next) => next();
const handler = {
  use: [pass],
  services: {},
  mapError: text,
  tags: ["a"],
  allow: () => true,
  scopes: ["a"],
  requires: ["elicitation"],
};
const provider = { name: "p", use: [pass], services: {}, mapError: text, tags: ["a"], allow: () => true };
const changes = { name: "n", title: "T", description: "d", deprecated: "use x", run: text };
const description = { title: "T", description: "d", icons: [], _meta: {} };
const local = {
  name: "r",
  ...description,
  mimeType: "a/b",
  annotations: {},
  maxBytes: 5,
  watch: false,
  ttlMs: 5,
  cacheScope: "public",
  allow: () => true,
  scopes: [],
  tags: [],
  use: [],
};
const client = { clientId: "x", clientSecret: "y", secretIn: "body" };
const issuer = "https://login.example";
const atProvider = { clientId: "x", clientSecret: "y", scopes: ["a"] };
const TENANT = "00000000-0000-0000-0000-000000000000";
const server = createServer(about);
const audit = extension({ id: "com.example/audit", listen: { ids: { filter: { type: "object" } } } });
const plain = extension({ id: "com.example/plain" });
const serverOptions = {
  ...about,
  title: "S",
  description: "d",
  websiteUrl: "https://a.example",
  instructions: "Use it.",
  icons: [],
  handlers: [],
  use: [pass],
  auth: { authenticate: () => undefined, credentials: { headers: ["x-key"], cookies: [], query: [] } },
  admit: () => true,
  capabilities: { listChanged: true, subscribe: true, completions: true, logging: true },
  path: "/mcp",
  hosts: ["a.example"],
  proxies: ["10.0.0.1"],
  requireSession: true,
  origins: ["https://a.example"],
  cors: { origins: ["https://a.example"], credentials: true, headers: ["traceparent"] },
  secret: "x".repeat(32),
  lenientArguments: true,
  sessionData: () => 1,
  limits: { calls: { running: 5 } },
  ttlMs: 5,
  cacheScope: "private",
  observer: {},
  routes: [],
  mapError: text,
  encoders: [],
  publishSchema: text,
  development: false,
};

/** A factory with a set of options that it accepts. */
type Sample = readonly [make: (options: Untyped) => unknown, options: Readonly<Record<string, unknown>>];

const OUTGOING = { timeoutMs: 5, maxBytes: 5, allowPrivate: [] };
const LOCKED = { server: {}, tools: {}, prompts: {}, resources: {}, resourceTemplates: {}, pages: {} };
const LOCK_FILE = { lockVersion: 1, servers: { a: LOCKED } };
const TOKENS = { scopes: ["a"], store: memoryTokens(), dpop: true, fetch: text };
const STORE = { timeoutMs: 5, pollMs: 5, valueBytes: 5, logEntries: 5, pending: 5, subscriptions: 5, leaseMs: 5 };

/** By entry and name, every exported factory with options. A factory can have several samples. */
const FACTORIES: Readonly<Record<string, readonly Sample[]>> = {
  ". createServer": [[createServer, serverOptions]],
  ". tool": [[tool, {
    ...handler,
    ...description,
    name: "t",
    input: { type: "object" },
    output: { type: "object" },
    lenientArguments: true,
    annotations: { title: "T", readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true },
    forCaller: () => undefined,
    about: ["a"],
    use: [quota({ timeoutMs: 5 }), cache({ ttlMs: 5 }), retry(), circuit()],
    text: "full",
    run: text,
  }]],
  ". prompt": [[prompt, { ...handler, ...description, name: "p", complete: {}, run: text }]],
  ". resource": [
    [resource, { ...handler, ...description, uri: "x://a", name: "r", size: 3, ttlMs: 5, mimeType: "a/b", read: text }],
    [resource, { ...handler, ...description, uri: "x://{a}", name: "r", list: () => [], complete: {}, read: text }],
  ],
  ". resourceProvider": [
    [resourceProvider, {
      ...handler,
      scheme: "x",
      name: "p",
      list: () => ({ resources: [] }),
      subscribe: text,
      unsubscribe: text,
      cacheScope: "public",
      read: text,
    }],
    [resourceProvider, {
      ...handler,
      name: "p",
      uris: ["x://"],
      list: () => ({ resources: [] }),
      templates: () => [],
      complete: () => [],
      listMs: 500,
      read: text,
    }],
  ],
  ". toolProvider": [[toolProvider, { ...provider, list: () => [], find: () => undefined }]],
  ". promptProvider": [[promptProvider, { ...provider, list: () => [], find: () => undefined }]],
  ". transform": [
    [(options) => transform(tool({ name: "t", run: text }), options), { ...changes, input: {}, annotations: {} }],
    [(options) => transform(prompt({ name: "p", run: text }), options), { ...changes, input: {} }],
    [(options) => transform(resource({ uri: "a://b", name: "r", read: text }), options), changes],
  ],
  ". group": [[(options) => group("g", [], options), { use: [pass], tags: ["a"], about: ["a"], allow: () => true }]],
  ". mount": [[(options) => mount([createServer(about)], options), {
    handlers: [{ handlers: [], to: ["s"] }],
    routes: [],
  }]],
  ". extension": [
    [extension, {
      id: "com.example/all",
      settings: {},
      undeclared: true,
      methods: { "a/b": { params: { type: "object" }, subject: "id", run: () => ({}) } },
      notifications: { "notifications/a": { params: { type: "object" }, run: text } },
      listen: { ids: { filter: { type: "object" }, grant: text } },
    }],
    [(options) => plain.layer(options), {
      list: {},
      required: true,
      registers: true,
      around: text,
      verify: text,
      warn: text,
    }],
    [(options) => audit.publish("ids", options), { topic: "a", method: "notifications/a", params: {} }],
  ],
  ". service": [
    [(options) => service("s", text, options), { per: "call", dispose: text }],
    [(options) => service("s", text, options), { per: () => "k", dispose: text, idleMs: 5, max: 3 }],
  ],
  ". media": [[(options) => media(new Uint8Array(), "image/png", options), { uri: "x://a", annotations: {} }]],
  ". resourceLink": [[(options) => resourceLink("x://a", options), { name: "a", ...description, mimeType: "a/b" }]],
  "./apps app": [[app, {
    uri: "ui://a",
    html: "<p>",
    csp: { connectDomains: [], resourceDomains: [], frameDomains: [], baseUriDomains: [] },
    permissions: { camera: {}, microphone: {}, geolocation: {}, clipboardWrite: {} },
    domain: "a.example",
    prefersBorder: true,
    name: "a",
    title: "A",
    description: "d",
    icons: [],
    tags: ["a"],
    allow: () => true,
    scopes: ["a"],
    ttlMs: 5,
    cacheScope: "public",
  }]],
  "./apps ui": [[(options) => ui(app({ uri: "ui://a", html: "<p>" }), options), { visibility: ["app"] }]],
  "./auth apiKey": [[apiKey, {
    keys: { ada: "ada-2f6c1e0b9d4a7853" },
    header: "x-key",
    cookie: "k",
    query: "k",
    realm: "r",
  }]],
  "./auth authScheme": [[authScheme, { name: "mine()", schemes: ["bearer"], prefix: "mine" }]],
  "./auth basicAuth": [[basicAuth, { users: { ada: "x" }, realm: "r" }]],
  "./auth customAuth": [[(options) => customAuth(() => undefined, options), {
    headers: ["a"],
    cookies: ["b"],
    query: ["c"],
    start: () => {},
  }]],
  "./auth refuseRequest": [[(options) => refuseRequest(401, options), { reason: "r", cause: 1, retryAfterMs: 5 }]],
  "./auth elicitationLinks": [
    [elicitationLinks, { server: "s", ttlMs: 5 }],
    [(options) => {
      const ctx = fakeContext({ principal: { id: "ada" }, answers: { k: { action: "accept" } } });
      return elicitationLinks().elicit(ctx, "k", options);
    }, { message: "m", url: "https://a.example/pay", data: 1, singleUse: true }],
  ],
  "./oauth/proxy entra": [[entra, { ...atProvider, tenant: "example.com", tenants: [TENANT] }]],
  "./oauth/proxy github": [[github, { ...atProvider, selectAccount: true }]],
  "./oauth/proxy google": [[google, { ...atProvider, selectAccount: true, hostedDomain: "example.com" }]],
  "./oauth/proxy oauth2": [[oauth2, {
    ...atProvider,
    name: "P",
    endpoints: { authorize: `${issuer}/a`, token: `${issuer}/t` },
    apis: [issuer],
    params: {},
    user: () => undefined,
    ends: ["a"],
  }]],
  "./oauth/proxy oidc": [
    [(options) => oidc(issuer, options), { ...atProvider, apis: [issuer], params: {}, name: "P" }],
  ],
  "./oauth/proxy oauthProxy": [[oauthProxy, {
    resource: "https://a.example/mcp",
    provider: github(atProvider),
    who: anyone,
    scopes: ["a"],
    redirects: ["https://b.example/callback"],
    clients: [{ id: "a", name: "A", redirects: ["https://c.example/callback"] }],
    prefix: "p",
    name: "A",
    texts: { title: "T" },
    fetch: text,
    documents: { fetch: text },
  }]],
  "./oauth oauth": [[oauth, {
    resource: "https://a.example/mcp",
    issuers: [issuer],
    audience: "a",
    scopes: ["a"],
    satisfies: () => true,
    readScopes: () => [],
    algorithms: ["ES256"],
    type: "at+jwt",
    skewMs: 5,
    metadata: {},
    rootMetadata: true,
    introspection: { ...client, issuer, endpoint: "https://login.example/introspect" },
    exchange: { ...client, issuer },
    fetch,
  }]],
  "./oauth clientCredentialsToken": [[clientCredentialsToken, {
    ...client,
    issuer,
    resource: "https://a.example",
    scopes: ["a"],
  }]],
  // Here no caller has a token. This error is thrown only after the option names were checked.
  "./oauth exchangeToken": [[async (options) => {
    try {
      await exchangeToken({ principal: undefined }, options);
    } catch (error) {
      if (error instanceof TypeError) throw error;
    }
  }, { audience: "a", resource: "https://a.example", scopes: ["a"] }]],
  "./observe prometheus": [[prometheus, { path: "/metrics", token: "x".repeat(16), handlers: true }]],
  "./serve serve": [[
    (options) => serve(createServer(about), options),
    { port: 0, hostname: "127.0.0.1", signal: AbortSignal.abort(), signals: false },
  ]],
  "./observe health": [[health, { alivePath: "/a", readyPath: "/b", store: "optional", timeoutMs: 5 }]],
  "./observe jsonLog": [[jsonLog, { redact: text, write: text, details: true }]],
  "./observe audit": [[auditCalls, { write: text, redact: text, onError: "continue" }]],
  "./observe/opentelemetry openTelemetry": [[openTelemetry, { details: true }]],
  "./observe/opentelemetry openTelemetryClient": [[openTelemetryClient, { url: "https://a.example/mcp" }]],
  "./observe record": [[record, { write: text, redact: text }]],
  "./layers quota": [[quota, {
    timeoutMs: 5,
    concurrency: { calls: 1, waiting: 2 },
    rate: { calls: 1, perMs: 5, burst: 2 },
    resultBytes: 5000,
    resultTokens: 500,
    countTokens: () => 1,
    onLarge: "more",
    items: () => [],
    cursorAfter: () => "a",
    keepMs: 5,
    keepBytes: 5,
  }]],
  "./layers cache": [[cache, { ttlMs: 5, entries: 5, bytes: 500 }]],
  "./layers guard": [[guard, { input: [text], output: [text] }]],
  "./layers retry": [[retry, { attempts: 2, delayMs: 5, maxDelayMs: 5, errors: () => true, unsafe: false }]],
  "./layers idempotent": [[
    // A function is accepted too, because it is short for an object with the key.
    (options) => idempotent(typeof options === "function" ? null as never : options),
    { key: text, rerun: false, ttlMs: 5 },
  ]],
  "./layers argument": [[argument, { name: "a", schema: {}, required: true }]],
  "./layers intent": [[intent, { text: "Why?" }]],
  "./layers planned": [[
    (options) => planned(tool({ name: "t", run: () => "" }), options),
    { plan: () => "all" },
  ]],
  "./layers member": [[member, { name: "a", schema: {} }]],
  "./layers circuit": [[circuit, { failures: 2, retryMs: 5, errors: () => true }]],
  "./search toolSearch": [[toolSearch, {
    always: ["a"],
    limit: 5,
    rank: () => [],
    names: { search: "a", call: "b", callReadOnly: "c" },
    when: () => true,
  }]],
  "./code codeMode": [[codeMode, {
    always: ["a"],
    limits: { cpuMs: 5, memoryBytes: 5, outputCharacters: 5, calls: 5, programs: 5, programsPerClient: 5 },
    sandbox: { run: () => Promise.resolve({ logs: [] }) },
  }]],
  "./handlers asTools": [
    [(options) => asTools(resource({ uri: "x://a", name: "a", read: text }), options), { name: "b" }],
  ],
  "./handlers httpTool": [[httpTool, {
    name: "t",
    fetch: {
      url: "https://a.example/",
      method: "POST",
      query: {},
      headers: {},
      body: "",
      ...OUTGOING,
    },
  }]],
  "./handlers sendRequest": [
    [async (options) => await sendRequest(new Request("https://a.example/"), options), {
      ...OUTGOING,
      fetch: () => new Response(),
    }],
  ],
  "./proxy proxy": [[(options) => proxy("https://a.example/mcp", options), {
    name: "a",
    prefix: "a_",
    headers: {},
    auth: { token: text },
    fetch: () => new Response(),
    share: "all",
    tools: {},
    use: [],
    tags: [],
    allow: () => true,
    scopes: [],
    timeoutMs: 5,
    forward: {},
    listMs: 5,
    lock: LOCK_FILE,
    required: false,
    instructions: false,
  }]],
  "./openapi openapi": [[(options) => openapi({ openapi: "3.1.0" }, options), {
    baseUrl: "https://a.example",
    fetch: text,
    as: text,
    transform: {},
    auth: {},
    output: "none",
    flatten: true,
    readOnly: true,
    ...OUTGOING,
  }]],
  "./handlers folder": [[folder, { path: "/", ...local, uri: "notes://", hidden: true, exclude: [], tools: "a_" }]],
  "./handlers file": [[file, { path: "/a.md", ...local, uri: "a:b" }]],
  "./handlers httpResource": [[httpResource, {
    url: "https://a.example/",
    uri: "a:b",
    ...description,
    name: "r",
    mimeType: "a/b",
    annotations: {},
    headers: {},
    ...OUTGOING,
  }]],
  "./client clientExtension": [[clientExtension, {
    id: "com.example/all",
    settings: {},
    subjects: {},
    results: { ticket: { schema: { type: "object" }, finish: text } },
    notifications: { "notifications/a": { params: { type: "object" }, receive: text } },
  }]],
  "./client connect": [
    [async (options) => await (await connectClient(server, options)).close(), {
      era: "modern",
      revisions: ["2026-07-28"],
      timeoutMs: 5000,
      headers: {},
      onElicit: text,
      sampling: { tools: true, context: true },
      info: { name: "a", version: "1" },
      capabilities: {},
    }],
    [async (options) => {
      await using client = await connectClient(server);
      await client.request("server/discover", {}, options);
    }, { onProgress: text, timeoutMs: 5000, headers: {}, meta: {}, finish: true }],
  ],
  "./discovery discover": [[(options) =>
    discover(new URL("../discovery/empty/", import.meta.url), options).catch(
      (error) => {
        // The folder does not exist. An error about the options does not name the folder.
        if (!error.message.includes("/tests/discovery/empty/")) throw error;
      },
    ), { recursive: true }]],
  "./stdio serveStdio": [[(options) =>
    // A stream can be read only once, so each call gets a new stream.
    serveStdio(server, options?.input ? Object.assign(options, { input: new Blob([]).stream() }) : options), {
    input: new Blob([]).stream(),
    output: async () => {},
    drainMs: 5,
    exit: false,
  }]],
  "./http-sse httpSse": [[(options) => httpSse(server, options), { path: "/sse", messages: "/messages" }]],
  "./websocket webSocket": [[(options) => webSocket(server, options), { path: "/ws" }]],
  "./stores customStore": [[(options) => customStore(() => text() as Untyped, options), STORE]],
  "./stores/redis redisStore": [[(options) => redisStore(() => text() as Untyped, options), {
    ...STORE,
    prefix: "a:",
  }]],
  "./stores/postgres postgresStore": [[(options) => postgresStore(() => text() as Untyped, options), {
    ...STORE,
    schema: "a",
  }]],
  "./stores/sqlite sqliteStore": [[(options) => sqliteStore(() => text() as Untyped, options), STORE]],
  "./stores/deno-kv denoKvStore": [[(options) => denoKvStore(() => text() as Untyped, options), STORE]],
  "./stores memoryStore": [[memoryStore, { bytes: 5000, leaseMs: 5 }]],
  "./skills skills": [[skills, { dir: "skills", ttlMs: 5, cacheScope: "public" }]],
  "./client/oauth signIn": [[signIn, {
    ...TOKENS,
    userAgent: text,
    signInMs: 5,
    client: { id: "a", secret: "b", issuer: "https://a.example" },
    clientName: "a",
    clientMetadataUrl: "https://a.example/client.json",
  }]],
  "./client/oauth pageSignIn": [[(options) => {
    using _tab = new Tab();
    return pageSignIn(options);
  }, {
    ...TOKENS,
    redirectUri: APP,
    open: text,
    client: { id: "a", issuer: "https://a.example" },
    clientName: "a",
    clientMetadataUrl: "https://a.example/client.json",
  }]],
  "./web webMcp": [[webMcp, { path: "/a.js", tools: ["a"] }]],
  "./client/oauth loopback": [[loopback, { open: text, port: 8001 }]],
  "./client/oauth clientCredentials": [[clientCredentials, { ...TOKENS, client: { id: "a", secret: "b", issuer } }]],
  "./client/oauth workloadIdentity": [[workloadIdentity, {
    ...TOKENS,
    assertion: text,
    issuer,
    client: { id: "a" },
  }]],
  "./client/oauth enterpriseSignIn": [[enterpriseSignIn, {
    ...TOKENS,
    idToken: text,
    client: { id: "a" },
    identityProvider: { tokenEndpoint: "https://a.example/token", client: { id: "b" } },
  }]],
  "./client lock": [[(options) => lock(LOCK_FILE, options), { server: "a", onWarning: text }]],
  "./client/skills skillsOf": [[(options) => skillsOf({} as Untyped, options), { server: "a", onInvalid: text }]],
  "./client/tasks taskClient": [[taskClient, { giveUpMs: 5, clock: systemClock }]],
  "./tasks task": [[task, {
    after: 5,
    ttlMs: 5,
    pollIntervalMs: 5,
    resume: { from: ["1"], afterExpiry: true },
    version: "2",
    required: true,
  }]],
  "./worker worker": [[(options) => worker(new URL("x.ts", import.meta.url), options), {
    size: 1,
    idleMs: 5,
    startMs: 5,
    stopMs: 5,
  }]],
  "./testing testTask": [[async (options) => await testTask({ run: text }, {}, options), {
    answers: {},
    services: {},
    principal: { id: "ada" },
    client: {},
    mayRepeat: ["a.b"],
  }]],
  "./testing connectTest": [
    [async (options) => await (await connectTest(closeAtEnd(createServer(about)), options)).close(), {
      era: "modern",
      transport: "memory",
      path: "/mcp",
      timeoutMs: 5000,
      onSample: text,
      roots: [],
    }],
    [async (options) => {
      await using client = await connectTest(closeAtEnd(createServer(about)));
      await client.request("server/discover", {}, options);
    }, { id: 7, rounds: true, timeoutMs: 5000 }],
  ],
  "./testing fakeContext": [[fakeContext, {
    answers: {},
    client: {},
    resources: {},
    session: 1,
    method: "a",
    params: {},
  }]],
  "./testing fakeGitHub": [[fakeGitHub, {
    users: [{ id: 1, login: "a" }],
    callback: "http://127.0.0.1:3000/callback",
    date: () => 0,
    isApp: true,
  }]],
  "./testing fakeGoogle": [[fakeGoogle, {
    users: [{ id: "1", email: "a@example.com", verified: true }],
    callback: "http://127.0.0.1:3000/callback",
    date: () => 0,
    claims: {},
  }]],
  "./testing replay": [[(options) => replay({ run: text }, {}, options), { answers: {}, services: {} }]],
  "./testing testStore": [[(options) => testStore(() => memoryStore(), options), { test: text }]],
};

/** By entry and name, the exported functions without an options object, and their parameters. */
const WITHOUT_OPTIONS: Readonly<Record<string, string>> = {
  "./layers confirm": "a question",
  "./layers layer": "a function that returns the steps, which each handler checks",
  "./observe consoleObserver": "nothing",
  ". isQuestion": "any value",
  ". onlyMethods": "methods and a middleware",
  "./auth hasScopes": "a context and scopes",
  "./apps supportsApp": "a context and an app",
  "./openapi principalOf": "a request",
  "./openapi readOpenApi": "a document",
  "./apps/page getPage": "nothing",
  "./auth findPrincipal": "a context and an authentication",
  "./auth requirePrincipal": "a context, and an authentication",
  "./oauth toPrincipalId": "an issuer and a subject",
  "./oauth/proxy anyone": "a user",
  ". withJsonSchema": "a schema",
  "./websocket attachSocket": "a server, a socket and a principal",
  "./client/oauth memoryTokens": "nothing",
  "./client/tasks resumeTask": "a client, an id, and options of requests, which each request checks",
  "./client/tasks startTool": "as callTool, which checks its options",
  "./tasks tasks": "nothing",
  "./worker exposeWorker": "a handler",
  "./testing fakeClock": "a date",
  "./testing replayTranscript": "a server and a transcript",
};

Deno.test("every exported function is in the table of factories, or takes no options", async () => {
  const found = new Set<string>();
  for (const [entry, path] of Object.entries(config.exports)) {
    // The CLI is not part of the library.
    if (entry === "./cli") continue;
    const exported: Record<string, unknown> = await import(new URL(`../../${path}`, import.meta.url).href);
    for (const [name, value] of Object.entries(exported)) {
      if (typeof value !== "function" || /^class\b/.test(Function.prototype.toString.call(value))) continue;
      found.add(`${entry} ${name}`);
    }
  }
  assertEquals([...found].sort(), [...Object.keys(FACTORIES), ...Object.keys(WITHOUT_OPTIONS)].sort());
});

behaviour(
  "a handler that is added later is refused with the same message, with and without development",
  async (join) => {
    const { server } = await join({ handlers: [] });
    assertThrows(
      () => server.handlers.add(tool({ name: "late", requiredScopes: ["a"], run: text } as Untyped)),
      TypeError,
      sentence('tool "late"', "requiredScopes", "scopes?"),
    );
    assertEquals(server.handlers.list(), []);
  },
);

behaviour("a question refuses a misspelled option, which could be singleUse", async (join) => {
  const schema = { type: "object", properties: { ok: { type: "boolean" } } };
  const options: Readonly<Record<string, object>> = {
    elicit: { message: "Pay?", schema, singleuse: true },
    elicitUrl: { message: "Pay?", url: "https://a.example", singleUses: true },
    // With this mistake, the question would be asked without its schema.
    form: { message: "Pay?", schema, requestedSchema: schema },
  };
  const ask = tool({
    name: "ask",
    input: { type: "object", properties: { kind: { type: "string" } } },
    run: ({ kind = "" }, ctx) =>
      (kind === "elicitUrl" ? ctx.elicitUrl : ctx.elicit)("pay", options[kind] as Untyped).then(() => "paid"),
  });
  let asked = 0;
  const accept = () => ({ action: "accept" as const, content: {}, count: asked++ });
  const { client, takeFaults } = await join({ handlers: [ask] }, { onElicit: accept, onElicitUrl: accept });
  for (const [kind, meant] of [["elicit", "singleUse"], ["elicitUrl", "singleUse"], ["form", "schema"]]) {
    assertEquals((await client.callTool("ask", { kind })).isError, true);
    const [{ error }] = takeFaults();
    assertEquals(`${error}`, sentence("TypeError", '"pay"', meant));
  }
  assertEquals(asked, 0);
});

behaviour(
  "the result of forCaller can contain only known names, and an undefined input changes nothing",
  async (join) => {
    const input = { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const;
    const { client, takeFaults } = await join({
      handlers: [
        tool({ name: "same", input, forCaller: () => ({ input: undefined }), run: ({ a }) => `${a}` }),
        ...[{ scopes: [] }, { inputs: {} }, false, null].map((variant, i) =>
          tool({ name: `wrong${i}`, input, scopes: ["never"], forCaller: () => variant as Untyped, run: text })
        ),
      ],
    });
    const { content } = await client.callTool("same", { a: 3 });
    assertEquals(content, [{ type: "text", text: "3" }]);
    assertEquals((await client.callTool("same", {})).isError, true);
    assertEquals((await client.listTools()).map(({ name }) => name), ["same"]);
    assertEquals(`${takeFaults()[0].error}`, sentence('tool "wrong0"', "forCaller", "scopes"));
  },
);

/** Calls a factory, and returns the message of its error. Throws if the factory accepts the options. */
async function refusalOf(make: Sample[0], options: object): Promise<string> {
  try {
    await make(options);
  } catch (error) {
    assert(error instanceof TypeError, `${error}`);
    return error.message;
  }
  throw new Error(`accepted ${Object.keys(options)}`);
}

const { pick, below } = random(20260728);

/** Changes one to three letters of a name. */
function misspell(name: string): string {
  let text = name;
  for (let i = below(3); i >= 0; i--) {
    const at = below(text.length + 1);
    const letter = pick("abcxyzS_");
    const change = below(4);
    if (change === 0) text = text.slice(0, at) + letter + text.slice(at);
    else if (change === 1) text = text.slice(0, at) + text.slice(at + 1);
    else if (change === 2) text = text.slice(0, at) + letter + text.slice(at + 1);
    else text = text.slice(0, at) + text.slice(at, at + 1).toUpperCase() + text.slice(at + 1);
  }
  return text || "x";
}

const NESTED = new Set(
  "cors annotations capabilities concurrency rate introspection exchange csp permissions".split(" "),
);

/** Returns all nested objects of options, with their path and names. */
function listPlaces(options: Readonly<Record<string, unknown>>, path = ""): readonly (readonly [string, string])[] {
  return Object.entries(options).flatMap(([name, value]) => {
    return [[path, name] as const, ...NESTED.has(name) ? listPlaces(value as Sample[1], `${path}${name}.`) : []];
  });
}

/** Copies options, and replaces one name with another. */
function rename(options: Readonly<Record<string, unknown>>, path: string, from: string, to: string): object {
  const [outer] = path.split(".");
  if (outer) return { ...options, [outer]: rename(options[outer] as Sample[1], "", from, to) };
  return Object.fromEntries(Object.entries(options).map(([name, value]) => [name === from ? to : name, value]));
}

for (const [factory, samples] of Object.entries(FACTORIES)) {
  Deno.test(`${factory} refuses misspelled names of all options, and accepts options that are undefined`, async () => {
    for (const [make, options] of samples) {
      await make(options);
      await make({ ...options, misspelt: undefined, [Symbol("any")]: 1 });
      // Options with inherited properties are refused, because these properties would not be checked, and copies would
      // lack them.
      const inheriting = await refusalOf(make, Object.assign(Object.create({ misspelt: 1 }), options));
      assertEquals(inheriting, sentence());
      for (const [path, name] of listPlaces(options)) {
        const wrong = name === "on" ? "onn" : `${name}x`;
        const closest = await refusalOf(make, rename(options, path, name, wrong));
        const quoted = path.replaceAll(".", "\\.");
        // The message suggests an option of the same object.
        assertMatch(closest, new RegExp(`\\b${quoted}${wrong}\\b.*\\b${quoted}\\w+\\?$`));
        for (let i = 0; i < 5; i++) {
          const wrong = misspell(name);
          const others = listPlaces(options).filter(([of]) => of === path).map(([, each]) => each);
          // By chance, a misspelling may be the name of another option of the same factory.
          if (others.includes(wrong)) continue;
          const message = await refusalOf(make, rename(options, path, name, wrong)).catch((error) => `${error}`);
          if (/^Error: accepted/.test(message)) assert(isKnown(wrong), `${factory} accepted ${path}${wrong}`);
        }
      }
      const [first, ...others] = await Promise.all(
        ["add", 5, true, null, [], text].map((wrong) => refusalOf(make, wrong as Untyped)),
      );
      assertEquals(first, sentence('"add"', "{ "));
      const remedyOf = (message: string) => message.slice(message.indexOf("; "));
      for (const message of others) assertEquals(remedyOf(message), remedyOf(first));
    }
  });
}

/**
 * Returns whether a name is a short option name that no sample contains, because a misspelling may equal such a name by
 * chance.
 */
function isKnown(name: string): boolean {
  return ["per", "uri", "id", "ids", "to", "run", "use", "key", "test", "path", "data", "url"].includes(name);
}

const keys = { ada: "ada-2f6c1e0b9d4a7853" };
const auth = apiKey({ keys });

/**
 * Common mistakes, and mistakes that would leave access open although the author meant to restrict it, each with the
 * error message.
 */
const MISTAKES: readonly (readonly [make: () => unknown, message: string])[] = [
  ...["scope", "requiredScopes", "Scopes", "permissions"].map((name) =>
    [
      () => tool({ name: "add", [name]: ["a"], run: text } as Untyped),
      sentence('tool "add"', name, "scopes"),
    ] as const
  ),
  [() => tool({ name: "t", allowed: text, run: text } as Untyped), sentence("allowed", "allow?")],
  ...["guards", "guard"].flatMap((name) =>
    [
      () => tool({ name: "t", [name]: {}, run: text } as Untyped),
      () => prompt({ name: "t", [name]: {}, run: text } as Untyped),
      () => resource({ uri: "x://a", name: "t", [name]: {}, read: text } as Untyped),
      () => resource({ uri: "x://{a}", name: "t", [name]: {}, read: text } as Untyped),
      () => resourceProvider({ scheme: "x", name: "t", [name]: {}, read: text } as Untyped),
      () => group("g", [], { [name]: {} } as Untyped),
      () => createServer({ ...about, [name]: {} } as Untyped),
    ].map((make) => [make, sentence("guard is a layer", "use: [guard(…)]")] as const)
  ),
  [() => tool({ name: "t", limits: {}, run: text } as Untyped), sentence("limits", "quota(…)")],
  // The beginning of a name, also of another library's name.
  [() => quota({ rate: { calls: 1, per: 1000 } } as Untyped), sentence("rate.per", "rate.perMs?")],
  [() => quota({ rate: { limit: 1, perMs: 1000 } } as Untyped), sentence("rate.limit", "rate.calls?")],
  [() => quota({ rate: { calls: 1, windowMs: 1000 } } as Untyped), sentence("rate.windowMs", "rate.perMs?")],
  [() => createServer({ ...about, limits: { calls: { run: 1 } } } as Untyped), sentence("calls.run", "calls.running?")],
  [() => tool({ name: "t", input: z.string(), run: text }), sentence('tool "t"', "{ text: schema }")],
  [() => prompt({ name: "p", input: z.array(z.string()), run: text } as Untyped), sentence("{ text: schema }")],
  [() => tool({ name: "t", input: { type: "string" }, run: text }), sentence('tool "t"', '"object"')],
  [() => tool({ name: "t", input: z.object({ day: z.date() }), run: text }), sentence(" day ", "z.iso.datetime()")],
  [
    () => createServer({ ...about, handlers: [tool({ name: "t", use: [task()], run: text })] }),
    sentence('tool "t"', "handlers: [tasks(), …]"),
  ],
  ...[
    (options: Untyped) => tool({ name: "t", run: text, ...options } as Untyped),
    (options: Untyped) => httpTool({ name: "h", fetch: { url: "https://a.example/" }, ...options } as Untyped),
    (options: Untyped) => prompt({ name: "p", run: text, ...options } as Untyped),
    (options: Untyped) => resource({ uri: "x://a", name: "r", read: text, ...options } as Untyped),
    (options: Untyped) => resource({ uri: "x://{a}", name: "r", read: text, ...options } as Untyped),
    (options: Untyped) => resourceProvider({ scheme: "x", name: "r", read: text, ...options } as Untyped),
    (options: Untyped) => group("g", [], options),
    (options: Untyped) => createServer({ ...about, ...options } as Untyped),
    (options: Untyped) =>
      extension({ id: "com.example/a", methods: { "a/b": { run: () => ({}), ...options } } } as Untyped),
  ].map((make) => [() => make({ quota: quota({ timeoutMs: 5 }) } as Untyped), sentence("quota(…)")] as const),
  [() => guard({ inputs: [] } as Untyped), sentence("inputs", "input?")],
  [() => tool({ name: "t", use: guard({}), run: text } as Untyped), sentence('tool "t"', "use")],
  [() => tool({ name: "t", handler: text, run: text } as Untyped), sentence("handler", "run?")],
  [() => tool({ name: "t", colour: 1, run: text } as Untyped), sentence("colour")],
  [() => tool({ name: "t", toString: 1, run: text } as Untyped), sentence("toString")],
  [() => tool({ name: "t", ["__proto__"]: 1, run: text } as Untyped), sentence("__proto__")],
  [
    () => tool({ name: "t", annotations: { readOnly: true }, run: text } as Untyped),
    sentence("annotations.readOnly", "annotations.readOnlyHint?"),
  ],
  [
    () => tool({ name: "t", readOnlyHint: true, run: text } as Untyped),
    sentence("readOnlyHint", "annotations.readOnlyHint?"),
  ],
  [() => (tool as Untyped)("add", {}, text), sentence('"add"', "{ name: ")],
  [() => (prompt as Untyped)("p", text), sentence('"p"', "{ name: ")],
  [() => (resource as Untyped)("r", "x://a"), sentence('"r"', "{ uri: ")],
  [() => createServer("calc" as Untyped), sentence('"calc"', "{ name: ")],
  [
    () => resource({ uri: "x://a", name: "r", list: text, read: text } as Untyped),
    sentence('resource "x://a"', "list", "note://{id}"),
  ],
  [
    () => toolProvider({ find: text, scopes: ["a"] } as Untyped),
    sentence("tool provider", "scopes", "each handler"),
  ],
  [
    () => transform(resource({ uri: "x://a", name: "r", read: text }), { input: {} } as Untyped),
    sentence('resource "x://a"', "input", "no arguments"),
  ],
  [
    () => resourceProvider({ scheme: "note", name: "r", title: "R", read: text } as Untyped),
    sentence('"note"', "title"),
  ],
  [() => service("tx", text, { perCall: true } as Untyped), sentence('service "tx"', "perCall", 'per: "call"')],
  [() => service("tx", text, { per: "call", max: 3 } as Untyped), sentence('service "tx"', "max")],
  [
    () => extension({ id: "com.example/a", methods: { "a/b": { input: {}, run: text } } } as Untyped),
    sentence('extension "com.example/a"', "methods.a/b.input", "methods.a/b.params"),
  ],
  [() => group("g", [], { scopes: ["a"] } as Untyped), sentence('group "g"', "scopes")],
  [() => mount([server], { auth } as Untyped), sentence("auth")],
  ...["authentication", "authenticate", "authorize", "authorization", "oauth", "authToken", "security"].map((name) =>
    [
      () => createServer({ ...about, [name]: auth } as Untyped),
      sentence(name, "auth?"),
    ] as const
  ),
  [() => createServer({ ...about, host: [] } as Untyped), sentence("host", "hosts?")],
  [() => createServer({ ...about, allowedHosts: [] } as Untyped), sentence("allowedHosts", "hosts?")],
  [() => createServer({ ...about, admits: text } as Untyped), sentence("admits", "admit?")],
  [() => createServer({ ...about, tools: [] } as Untyped), sentence("tools", "handlers?")],
  [() => createServer({ ...about, timeoutMs: 5 } as Untyped), sentence("timeoutMs", "limits.calls.timeoutMs")],
  [() => createServer({ ...about, session: text } as Untyped), sentence("session", "sessionData?")],
  [() => createServer({ ...about, params: {} } as Untyped), sentence("params", "pathSchema?")],
  [() => createServer({ ...about, sessions: "required" } as Untyped), sentence("sessions", "requireSession?")],
  [
    () => resource({ uri: "x://{a}", name: "a", params: {}, read: text } as Untyped),
    sentence('"x://{a}"', "params", "variables?"),
  ],
  [() => fakeContext({ route: {} } as Untyped), sentence("route", "pathParams?")],
  [
    () => createServer({ ...about, auth: { authenticate: text, credential: {} } } as Untyped),
    sentence("auth.credential", "auth.credentials?"),
  ],
  [() => quota({ perMs: 5 } as Untyped), sentence("perMs", "rate.perMs")],
  [() => quota({ queue: 5 } as Untyped), sentence("queue")],
  [() => server.listChanged("tools", { only: text } as Untyped), sentence("only")],
  [() => server.log.info("x", { too: text } as Untyped), sentence("too", "to?")],
];

Deno.test("an unknown option is refused, and the error names the correct option", () => {
  for (const [make, message] of MISTAKES) assertThrows(make, TypeError, message);
  // An instance of a class can have its own fields.
  class Gate {
    users = new Map();
    authenticate() {
      return undefined;
    }
  }
  createServer({ ...about, auth: new Gate() });
});

Deno.test("development adds no warnings about options", async () => {
  const warnings = await collectWarnings(async () => {
    await using server = createServer({ ...about, development: true, handlers: [tool({ name: "t", run: text })] });
    await (await connectTest(server)).close();
  });
  assertEquals(warnings, []);
});
