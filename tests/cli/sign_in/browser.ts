// Acts as the user's browser in tests: allows the client on a consent page, signs in the user named by `TEST_USER`, and
// loads the final page. The server itself is the stand-in for GitHub.
const [address = ""] = Deno.args;
const { origin, searchParams } = new URL(address);
const redirectUri = searchParams.get("redirect_uri") ?? "";
const cookies = new Map<string, string>();
let url = address;
let body: URLSearchParams | undefined;
while (!url.startsWith(redirectUri)) {
  const cookie = [...cookies].map((each) => each.join("=")).join("; ");
  const headers = { cookie, "x-user": Deno.env.get("TEST_USER") ?? "", ...body && { origin } };
  const isGitHub = url.startsWith("https://github.com/");
  const target = isGitHub ? `${origin}/github?${new URLSearchParams({ url })}` : url;
  const response = await fetch(target, { method: body ? "POST" : "GET", body, redirect: "manual", headers });
  const text = await response.text();
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    cookies.set(name, value);
  }
  const request = /name="request" value="([^"]+)"/.exec(text)?.[1];
  body = request === undefined ? undefined : new URLSearchParams({ request, action: "allow" });
  url = body ? `${origin}/consent` : new URL(response.headers.get("location") ?? "", url).href;
}
const last = await fetch(url);
await Deno.writeTextFile(Deno.env.get("TEST_PAGES") ?? "", `${await last.text()}\n`, { append: true });
