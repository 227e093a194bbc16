// Measures the cost of authentication. Compares calls that have an already verified token with calls to a server
// without `auth`. The two servers run in one process and take turns. Prints one line, and exits with an error if the
// cost exceeds the target.
//
//     deno run -A --no-check bench/auth.ts
//     bun bench/auth.ts
import process from "node:process";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { createServer, type Server, tool } from "../mod.ts";
import { oauth } from "../src/auth/oauth/oauth.ts";
import { toRequest } from "../tests/support/requests.ts";
import { toRatios, toSpread } from "./ratios.ts";

/** Target: the maximum cost of a call with an already verified token, relative to a call to a server without `auth`. */
const AIM = 1.15;
const PAIRS = 40;
const TURNS = 60;
const CALLS = 16;

const issuer = "https://login.example.com";
const resource = "https://mcp.example.com/mcp";

const { publicKey, privateKey } = await generateKeyPair("ES256");
const jwks = { keys: [{ ...await exportJWK(publicKey), alg: "ES256", kid: "1" }] };
const groups = Array.from({ length: 8 }, () => crypto.randomUUID());
const token = await new SignJWT({ scope: "notes:read notes:write", client_id: "app", groups })
  .setProtectedHeader({ alg: "ES256", kid: "1", typ: "at+jwt" })
  .setIssuer(issuer).setAudience(resource).setSubject("ada").setIssuedAt().setExpirationTime("1h").sign(privateKey);

function respond(url: string): Promise<Response> {
  return Promise.resolve(Response.json(url.endsWith("/jwks") ? jwks : { issuer, jwks_uri: `${issuer}/jwks` }));
}

const add = tool({
  name: "add",
  input: { type: "object", properties: { a: { type: "number" } }, required: ["a"] } as const,
  run: ({ a }) => ({ sum: a + 1 }),
});
const base = { name: "bench", version: "1.0.0", handlers: [add] };
const open = createServer(base);
const known = createServer({ ...base, auth: oauth({ resource, issuers: [issuer], fetch: respond }) });
const signed = { authorization: `Bearer ${token}` };

/** Makes the calls of one turn. Returns the CPU time per call in microseconds. */
async function drive(server: Server, headers: Record<string, string>): Promise<number> {
  const requests = Array.from(
    { length: CALLS },
    () => toRequest("tools/call", { name: "add", arguments: { a: 1 } }, headers),
  );
  const start = process.cpuUsage();
  for (const request of requests) {
    const response = await server.fetch(request);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`Cannot measure: ${response.status} ${text}`);
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / CALLS;
}

/** Returns the mean of the middle half, because slow turns contain garbage collections. */
function toMiddle(times: readonly number[]): number {
  const middle = [...times].sort((a, b) => a - b).slice(times.length / 4, times.length * 3 / 4);
  return middle.reduce((sum, each) => sum + each, 0) / middle.length;
}

const times = { open: [] as number[], known: [] as number[] };
for (let pair = -5; pair < PAIRS; pair++) {
  const turns = { open: [] as number[], known: [] as number[] };
  for (let turn = 0; turn < TURNS; turn++) {
    // Alternate the order, because each turn changes the CPU caches for the next turn.
    const order = turn % 2 ? ["open", "known"] as const : ["known", "open"] as const;
    for (const name of order) turns[name].push(await (name === "open" ? drive(open, {}) : drive(known, signed)));
  }
  // Ignore the warm-up pairs.
  if (pair < 0) continue;
  times.open.push(toMiddle(turns.open));
  times.known.push(toMiddle(turns.known));
}
const ratios = toRatios(times.known, times.open);
const micros = (list: readonly number[]) => `${toMiddle(list).toFixed(1)} µs`;
console.log(
  `a call with a verified token / a call without auth: ${ratios.median.toFixed(3)} (${
    toSpread(ratios)
  }), target ≤ ${AIM}; ` +
    `${micros(times.known)} and ${micros(times.open)}; the token has ${token.length} characters`,
);
if (ratios.median > AIM) process.exitCode = 1;
