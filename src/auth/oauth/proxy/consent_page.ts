/**
 * The pages of a sign-in: the question whether a client may act for the user, and errors.
 */

/** Texts of the consent page. `{client}`, `{server}`, `{provider}`, `{host}` and `{scopes}` are replaced. */
export interface ConsentTexts {
  /** Defaults to `Allow {client} to use {server}?` */
  readonly title?: string;
  /** Explains that anybody can choose the name. */
  readonly claim?: string;
  /** Explains where the browser goes after the sign-in. */
  readonly target?: string;
  /** Warns of an app on this computer. */
  readonly local?: string;
  /** Explains where the user signs in. */
  readonly provider?: string;
  /** Label of the scopes of this server. */
  readonly scopes?: string;
  /** Label of the button that continues. */
  readonly allow?: string;
  /** Label of the button that refuses. */
  readonly deny?: string;
  /** Language of the page, such as `en`. */
  readonly language?: string;
}

const TEXTS: Required<ConsentTexts> = {
  title: "Allow {client} to use {server}?",
  claim: "The app calls itself {client}. Anybody can choose this name.",
  target: "After you have signed in, your browser opens this address:",
  local: "Any program on this computer can use this name and this address.",
  provider: "You sign in at {provider}, which is asked for: {scopes}.",
  scopes: "The app can then do this on {server}:",
  allow: "Continue to {provider}",
  deny: "Cancel",
  language: "en",
};

export interface Consent {
  readonly client: string;
  readonly server: string;
  readonly provider: string;
  readonly providerScopes: readonly string[];
  readonly scopes: readonly string[];
  readonly redirectUri: string;
  /** Whether any program on the user's computer can receive the redirect. */
  readonly isLocal: boolean;
  /** The sealed request. */
  readonly request: string;
}

/** Returns a page with a form. The form has two buttons with the name `action`: `allow` and `deny`. */
export function toConsentPage(consent: Consent, given: ConsentTexts = {}): Response {
  const texts = { ...TEXTS, ...given };
  const { client, server, provider, providerScopes, scopes, redirectUri, isLocal, request } = consent;
  const { host } = new URL(redirectUri);
  const values: Readonly<Record<string, string>> = {
    client,
    server,
    provider,
    host,
    scopes: providerScopes.join(", ") || "your name",
  };
  const fill = (text: string) =>
    text.split(/(\{\w+\})/).map((part) => {
      const value = values[part.slice(1, -1)];
      return /^\{\w+\}$/.test(part) && value !== undefined ? `<bdi>${escape(value)}</bdi>` : escape(part);
    }).join("");
  const at = host ? redirectUri.indexOf(host) : -1;
  const address = at < 0
    ? `<strong>${escape(redirectUri)}</strong>`
    : `${escape(redirectUri.slice(0, at))}<strong>${escape(host)}</strong>${
      escape(redirectUri.slice(at + host.length))
    }`;
  const list = scopes.length
    ? `<p>${fill(texts.scopes)}</p><ul>${scopes.map((scope) => `<li><code>${escape(scope)}</code></li>`).join("")}</ul>`
    : "";
  return toHtml(200, {
    language: texts.language,
    title: texts.title.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole),
    body: `<h1>${fill(texts.title)}</h1>
<p>${fill(texts.claim)}</p>
<p>${fill(texts.target)}</p>
<p class="address" dir="ltr">${address}</p>
${isLocal ? `<p class="warning">${fill(texts.local)}</p>` : ""}
<p>${fill(texts.provider)}</p>
${list}
<form method="post" action="consent">
<input type="hidden" name="request" value="${escape(request)}">
<button name="action" value="allow" class="main">${fill(texts.allow)}</button>
<button name="action" value="deny">${fill(texts.deny)}</button>
</form>`,
  });
}

/** Returns a page with an error. `detail` is text from elsewhere, such as from the provider. */
export function toErrorPage(status: number, message: string, detail?: string): Response {
  const more = detail === undefined ? "" : `<p class="address">${escape(detail.slice(0, 500))}</p>`;
  const body = `<h1>Cannot sign in</h1><p>${escape(message)}</p>${more}`;
  return toHtml(status, { language: "en", title: "Cannot sign in", body });
}

const STYLE = `:root{color-scheme:light dark;--line:#767676;--main:#0b57d0;--on:#fff}
@media (prefers-color-scheme:dark){:root{--main:#a8c7fa;--on:#062e6f}}
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:34rem;padding:1.5rem;overflow-wrap:anywhere}
h1{font-size:1.375rem;line-height:1.3}
.address{border:1px solid var(--line);border-radius:.5rem;font-family:ui-monospace,monospace;padding:.5rem .75rem}
.warning{border-left:.25rem solid #c77700;padding-left:.75rem}
form{display:flex;flex-wrap:wrap;gap:.75rem;margin-top:1.5rem}
button{border:1px solid var(--line);border-radius:.5rem;font:inherit;min-height:2.75rem;padding:.5rem 1.25rem}
.main{background:var(--main);border-color:var(--main);color:var(--on)}`;

function toHtml(
  status: number,
  { language, title, body }: { readonly language: string; readonly title: string; readonly body: string },
): Response {
  const html = `<!doctype html>
<html lang="${escape(language)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escape(title)}</title>
<style>${STYLE}</style>
</head>
<body><main>
${body}
</main></body>
</html>
`;
  return new Response(html, { status, headers: { "content-type": "text/html; charset=utf-8" } });
}

const ESCAPES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character]);
}
