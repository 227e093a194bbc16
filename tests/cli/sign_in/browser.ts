// Acts as the user's browser in tests: signs in the user named by `TEST_USER`, and loads the final page.
const [address = ""] = Deno.args;
const redirectUri = new URL(address).searchParams.get("redirect_uri") ?? "";
const cookies = new Map<string, string>();
let url = address;
while (!url.startsWith(redirectUri)) {
  const cookie = [...cookies].map((each) => each.join("=")).join("; ");
  const headers = { cookie, "x-user": Deno.env.get("TEST_USER") ?? "" };
  const response = await fetch(url, { redirect: "manual", headers });
  await response.body?.cancel();
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    cookies.set(name, value);
  }
  url = new URL(response.headers.get("location") ?? "", url).href;
}
const last = await fetch(url);
await Deno.writeTextFile(Deno.env.get("TEST_PAGES") ?? "", `${await last.text()}\n`, { append: true });
