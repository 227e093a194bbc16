// Stands in for the user's browser: follows an authorization URL up to the client's redirect URI, which it then opens.
//
//   deno run -A tests/clients/browser.ts URL
import { signIn } from "../auth/oidc.ts";

const first = new URL(Deno.args.find((word) => /^https?:/.test(word)) ?? "");
// The probe serves the page of GitHub.
const toUrl = (url: URL) => url.origin === "https://github.com" ? new URL(`/github${url.search}`, first) : url;
const callback = await signIn(first, "ada", toUrl);
const response = await fetch(callback);
await response.body?.cancel();
