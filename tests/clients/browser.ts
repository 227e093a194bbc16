// Stands in for the user's browser: follows an authorization URL up to the client's redirect URI, which it then opens.
//
//   deno run -A tests/clients/browser.ts URL
import { signIn } from "../auth/oidc.ts";

const callback = await signIn(new URL(Deno.args.find((word) => /^https?:/.test(word)) ?? ""), "ada");
const response = await fetch(callback);
await response.body?.cancel();
