// Grants without a sign-in page, for programs, company users and workloads: to which server each credential is sent,
// and which requests are not repeated. The prefixes of the test names refer to the extensions oauth-client-credentials
// and enterprise-managed-authorization, and to RFC 7523 (workload).
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  clientCredentials,
  enterpriseSignIn,
  memoryTokens,
  type SignIn,
  workloadIdentity,
} from "../../../src/client/oauth/oauth.ts";
import { textOf } from "../../support/behaviour.ts";
import { sentence } from "../../support/messages.ts";
import { throwing } from "../../support/throwing.ts";
import { Bed } from "./bed.ts";

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

async function use(bed: Bed, auth: SignIn): Promise<string> {
  await using client = await bed.connect(auth);
  return textOf(await client.callTool("hello"));
}

/** Returns the token requests that the bed has received, with only the fields that these tests check. */
function tokenRequests(bed: Bed) {
  return bed.seen.filter(({ url }) => url === `${bed.issuer}/token`);
}

async function createKey() {
  const { privateKey } = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
    "sign",
    "verify",
  ]);
  return { ...await crypto.subtle.exportKey("jwk", privateKey), alg: "ES256", kid: "one" };
}

Deno.test("client credentials: the client sends the secret only to the token endpoint, with resource and scope", async () => {
  await using bed = new Bed();
  assertEquals(
    await use(bed, clientCredentials({ client: { id: "a:b", secret: "s/ä%", issuer: bed.issuer }, fetch: bed.fetch })),
    "Hello!",
  );
  const [{ authorization }] = tokenRequests(bed);
  assertEquals(atob(authorization?.slice("Basic ".length) ?? ""), "a%3Ab:s%2F%C3%A4%25");
  assertEquals(bed.forms, [{ grant_type: "client_credentials", resource: bed.server, scope: "read" }]);
  assertEquals(bed.seen.filter(({ authorization }) => authorization?.startsWith("Basic ")).length, 1);
  assertEquals(bed.visits, []);
});

Deno.test("client credentials: the client signs an assertion for the issuer with the key, and never sends the key", async () => {
  await using bed = new Bed();
  const key = await createKey();
  assertEquals(
    await use(bed, clientCredentials({ client: { id: "a", key, issuer: bed.issuer }, fetch: bed.fetch })),
    "Hello!",
  );
  const [form] = bed.forms;
  assertEquals(form.client_assertion_type, "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
  const [header, claims] = form.client_assertion.split(".").slice(0, 2).map((part) =>
    JSON.parse(atob(part.replaceAll("-", "+").replaceAll("_", "/")))
  );
  assertEquals([header.alg, header.kid, claims.iss, claims.sub, claims.aud], ["ES256", "one", "a", "a", bed.issuer]);
  assert(claims.exp > claims.iat && claims.jti);
  assert(bed.seen.every(({ body }) => !body.includes(String(key.d))));
});

Deno.test("client credentials: options with both a secret and a key, or with neither, are refused", async () => {
  const key = await createKey();
  const issuer = "https://login.example.com";
  const create = (client: object) => () => clientCredentials({ client: { id: "a", issuer, ...client } });
  assertThrows(create({ secret: "b", key }), TypeError, sentence("client.secret", "client.key"));
  assertThrows(create({}), TypeError, sentence("client.secret", "client.key"));
});

Deno.test("a credential is refused if the options do not name its authorization server", async () => {
  const key = await createKey();
  const idToken = () => "the-id-token";
  const identityProvider = { tokenEndpoint: "https://idp.example.org/token", client: { id: "a", secret: "b" } };
  for (const issuer of [undefined, "", "login", 5] as never[]) {
    for (const secret of [{ secret: "b" }, { key }]) {
      const client = { id: "a", issuer, ...secret };
      assertThrows(() => clientCredentials({ client }), TypeError, sentence("client.issuer"));
      assertThrows(() => enterpriseSignIn({ client, idToken, identityProvider }), TypeError, sentence("client.issuer"));
    }
    assertThrows(() => workloadIdentity({ assertion: () => "jwt", issuer }), TypeError, sentence("issuer"));
  }
});

Deno.test("a credential is sent only to the authorization server that the options name", async () => {
  const key = await createKey();
  const issuer = "https://own.example.com";
  for (
    const create of [
      ({ fetch }: Bed) => clientCredentials({ client: { id: "a", secret: "kept-here", issuer }, fetch }),
      ({ fetch }: Bed) => clientCredentials({ client: { id: "a", key, issuer }, fetch }),
      ({ fetch }: Bed) => workloadIdentity({ assertion: () => "kept-here", issuer, fetch }),
      (bed: Bed) => bed.signIn({ client: { id: "a", secret: "kept-here", issuer } }),
    ]
  ) {
    await using bed = new Bed();
    await assertRejects(() => use(bed, create(bed)), Error, sentence(issuer, bed.issuer));
    assertEquals([bed.forms, bed.visits], [[], []]);
    assert(bed.seen.every(({ body, authorization }) => !`${body} ${authorization}`.includes("kept-here")));
  }
});

Deno.test("a token with a lifetime of one second is replaced after its expiry", async () => {
  await using bed = new Bed({ token: ({ refresh_token: _, ...right }) => ({ ...right, expires_in: 1 }) });
  const store = memoryTokens();
  const create = () =>
    clientCredentials({ client: { id: "a", secret: "b", issuer: bed.issuer }, store, fetch: bed.fetch });
  assertEquals(await use(bed, create()), "Hello!");
  bed.revoke();
  const times = { issuedAt: Date.now() - 1001, expiresAt: Date.now() - 1 };
  await store.update(
    `server ${bed.server}`,
    (text) => Promise.resolve(JSON.stringify({ ...JSON.parse(text ?? ""), ...times })),
  );
  assertEquals([await use(bed, create()), bed.forms.length], ["Hello!", 2]);
});

Deno.test("a token of another type than Bearer and DPoP is refused, except from an identity provider", async () => {
  await using bed = new Bed({ token: (right) => ({ ...right, token_type: "N_A" }) });
  const { issuer, fetch } = bed;
  for (
    const auth of [
      clientCredentials({ client: { id: "a", secret: "b", issuer }, fetch }),
      workloadIdentity({ assertion: () => "jwt-1", issuer, fetch }),
    ]
  ) await assertRejects(() => use(bed, auth), Error, "token_type");
  assertEquals(bed.forms.length, 2);
});

Deno.test("the client does not request tokens endlessly if each token has already expired when it is issued", async () => {
  let issued = 0;
  await using bed = new Bed({
    token: ({ refresh_token: _, ...right }) => ({ ...right, access_token: `bad-${++issued}`, expires_in: 0 }),
  });
  await assertRejects(
    () => use(bed, clientCredentials({ client: { id: "a", secret: "b", issuer: bed.issuer }, fetch: bed.fetch })),
    Error,
  );
  assertEquals(issued, 1);
});

Deno.test("an expiry time beyond the range of timers is accepted, and causes no renewal", async () => {
  for (const expires_in of [1e12, 1e306, "3600"]) {
    await using bed = new Bed({ token: (right) => ({ ...right, expires_in }) });
    const auth = clientCredentials({
      client: { id: "a", secret: "b", issuer: bed.issuer },
      store: memoryTokens(),
      fetch: bed.fetch,
    });
    for (let round = 0; round < 2; round++) assertEquals(await use(bed, auth), "Hello!");
    const info = await auth.info(bed.server);
    assert(typeof info?.expiresAt === "number" && info.expiresAt > Date.now(), String(info?.expiresAt));
    assertEquals(bed.forms.length, 1);
  }
});

// Enterprise-managed authorization.

interface Company {
  readonly endpoint?: string;
  readonly answer?: Readonly<Record<string, unknown>>;
}

/** Adds an identity provider to the servers of a bed. */
function createCompany(bed: Bed, { endpoint = "https://idp.example.org/token", answer }: Company = {}) {
  const exchanges: Record<string, string>[] = [];
  const right = { access_token: "the-id-jag", token_type: "N_A", issued_token_type: ID_JAG, expires_in: 300 };
  const auth = enterpriseSignIn({
    client: { id: "at-server" },
    idToken: () => "the-id-token",
    identityProvider: { tokenEndpoint: endpoint, client: { id: "at-idp", secret: "idp-secret" } },
    async fetch(request) {
      if (request.url !== endpoint) return await bed.fetch(request);
      exchanges.push(Object.fromEntries(new URLSearchParams(await request.text())));
      return Response.json(answer ?? right);
    },
  });
  return { auth, exchanges };
}

Deno.test("enterprise: the client sends the ID token only to the identity provider, and the resulting assertion only to the issuer", async () => {
  await using bed = new Bed();
  const { auth, exchanges } = createCompany(bed);
  assertEquals(await use(bed, auth), "Hello!");
  assertEquals(exchanges, [{
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    requested_token_type: ID_JAG,
    audience: bed.issuer,
    resource: bed.server,
    scope: "read",
    subject_token: "the-id-token",
    subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
  }]);
  assertEquals([bed.forms[0].grant_type, bed.forms[0].assertion], [JWT_BEARER, "the-id-jag"]);
  for (const { body, authorization } of bed.seen) {
    assert(!body.includes("the-id-token") && !body.includes("idp-secret"));
    assert(!authorization?.includes("the-id-jag"));
  }
});

Deno.test("enterprise: an identity provider in a private network can be used for a public server", async () => {
  await using bed = new Bed();
  const { auth, exchanges } = createCompany(bed, { endpoint: "https://idp.corp.internal/token" });
  assertEquals([await use(bed, auth), exchanges.length], ["Hello!", 1]);
});

Deno.test("enterprise: an identity provider over http is refused before the client sends the ID token", async () => {
  await using bed = new Bed();
  const { auth, exchanges } = createCompany(bed, { endpoint: "http://idp.example.org/token" });
  await assertRejects(() => use(bed, auth), Error, sentence("http://idp.example.org"));
  assertEquals([exchanges.length, bed.forms.length], [0, 0]);
});

Deno.test("enterprise: if the identity provider returns a token of another type, the client does not forward the token", async () => {
  for (const type of ["urn:ietf:params:oauth:token-type:access_token", undefined, 5]) {
    await using bed = new Bed();
    const answer = { access_token: "not-for-you", token_type: "N_A", issued_token_type: type };
    const { auth } = createCompany(bed, { answer });
    const error = await assertRejects(() => use(bed, auth), Error);
    assertEquals([error.message.includes("not-for-you"), bed.forms.length], [false, 0]);
  }
});

// Workloads.

Deno.test("workload: the client sends the assertion as the grant, with or without client credentials", async () => {
  for (const client of [undefined, { id: "a" }]) {
    await using bed = new Bed();
    const { issuer, fetch } = bed;
    assertEquals(await use(bed, workloadIdentity({ assertion: () => "jwt-1", issuer, client, fetch })), "Hello!");
    const { grant_type, assertion, resource, client_id } = bed.forms[0];
    assertEquals([grant_type, assertion, resource], [JWT_BEARER, "jwt-1", bed.server]);
    assertEquals(client_id, client?.id);
  }
});

Deno.test("workload: the client sends a new assertion after a refusal, and never sends the refused assertion again", async () => {
  let assertion = "jwt-old";
  await using bed = new Bed({
    token: (right, form) =>
      form.assertion === "jwt-old" ? Response.json({ error: "invalid_grant" }, { status: 400 }) : right,
  });
  const auth = workloadIdentity({ assertion: () => assertion, issuer: bed.issuer, fetch: bed.fetch });
  for (let round = 0; round < 3; round++) await assertRejects(() => use(bed, auth), Error, "invalid_grant");
  assertEquals(bed.forms.map((form) => form.grant_type), [JWT_BEARER]);
  assertEquals(bed.visits, []);
  assertEquals(bed.seen.filter(({ url }) => url.endsWith("/register")), []);
  assertion = "jwt-new";
  assertEquals([await use(bed, auth), bed.forms.length], ["Hello!", 2]);
});

Deno.test("workload: the client sends the same assertion again after a failure other than a refusal", async () => {
  const failures = [
    () => Response.json({ error: "temporarily_unavailable" }, { status: 503 }),
    () => new Response("", { status: 502 }),
    throwing(new TypeError("connection reset")),
  ];
  for (const fail of failures) {
    let isFailing = true;
    await using bed = new Bed({ token: (right) => isFailing ? fail() : right });
    const auth = workloadIdentity({ assertion: () => "jwt-1", issuer: bed.issuer, fetch: bed.fetch });
    await assertRejects(() => use(bed, auth), Error, sentence(bed.issuer));
    isFailing = false;
    assertEquals(await use(bed, auth), "Hello!");
  }
});

const repeated = { secret: "top/secret+1", assertion: "jwt-5" };
for (
  const [name, create] of [
    [
      "a client secret",
      async ({ issuer, fetch }: Bed) =>
        await clientCredentials({ client: { id: "a", secret: repeated.secret, issuer }, fetch }),
    ],
    [
      "a signed assertion",
      async ({ issuer, fetch }: Bed) =>
        clientCredentials({ client: { id: "a", key: await createKey(), issuer }, fetch }),
    ],
    [
      "an assertion of a platform",
      async ({ issuer, fetch }: Bed) => await workloadIdentity({ assertion: () => repeated.assertion, issuer, fetch }),
    ],
  ] as const
) {
  Deno.test(`an error does not contain ${name}, even if the authorization server's response does`, async () => {
    const sent: string[] = [];
    await using bed = new Bed({
      token: (_, form) => {
        const basic = tokenRequests(bed).at(-1)?.authorization?.slice("Basic ".length);
        const header = basic ? [basic, atob(basic).slice("a:".length), repeated.secret] : [];
        sent.push(...[form.assertion, form.client_assertion].filter(Boolean), ...header);
        const text = JSON.stringify({ error: "server_error", error_description: `no ${sent.join(" ")}` });
        const headers = { "content-type": "application/json" };
        return new Response(text.replaceAll("/", "\\/"), { status: 400, headers });
      },
    });
    const auth = await create(bed);
    const error = await assertRejects(() => use(bed, auth), Error);
    assertEquals(error.message, sentence("server_error", "…"));
    assert(sent.length > 0);
    assertEquals(sent.filter((each) => error.message.includes(each)), []);
  });
}
