// A client that signs the user in if the server requires authorization, and prints the server's tools.
//
//   deno run -A examples/sign_in.ts https://mcp.example.com/mcp
//   bun examples/sign_in.ts https://mcp.example.com/mcp
import process from "node:process";
import { connect } from "@x/mcp/client";
import { loopback, signIn } from "@x/mcp/client/oauth";

const [url = "http://localhost:3000/mcp"] = process.argv.slice(2);

const auth = signIn({
  userAgent: loopback({
    open: ({ url, issuer, pageHost }) =>
      console.error(`Sign in at ${issuer}${pageHost ? `, on a page of another host, ${pageHost}` : ""}: ${url}`),
  }),
  clientName: "Tool lister",
  // Tokens are kept in memory. Pass a `store`, so that the user need not sign in again after a restart.
});

const client = await connect(url, { auth });
for (const { name, description = "" } of await client.listTools()) console.log(`${name}: ${description}`);
const info = await auth.info(url);
console.error(
  info ? `Signed in at ${info.issuer} with ${info.scopes.join(" ") || "no scopes"}` : "No sign-in needed",
);
await client.close();
