/**
 * Builds the page as a single HTML document with inline style and script.
 */
import { toBase64 } from "../../core/kit/base64.ts";
import { script, style } from "./page_bundle.ts";

/** Must not contain secrets, because even a page that was opened without the key contains the configuration. */
export interface PageConfig {
  /** The endpoint path of the MCP server that serves the page, if any. */
  readonly endpoint?: string;
  /** The protocol revision that the page uses with its own server. */
  readonly protocol: string;
  /** The origin of the frames that show apps. Without an origin, the page shows no apps. */
  readonly sandbox?: string;
  readonly version: string;
}

export interface Page {
  readonly html: string;
  /** The value of the `Content-Security-Policy` header. */
  readonly policy: string;
}

/** Builds the page. The page runs only its own script and style, loads nothing, and connects only to its own server. */
export async function buildPage(config: PageConfig): Promise<Page> {
  const policy = [
    "default-src 'none'",
    `script-src ${await toHash(script)}`,
    `style-src ${await toHash(style)}`,
    "connect-src 'self'",
    "img-src data:",
    "media-src data:",
    `frame-src ${config.sandbox ?? "'none'"}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Require trusted types, so that text cannot become markup or code.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="inspector" content="${toAttribute(JSON.stringify(config))}">
<title>Inspector</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<body>
<noscript>The inspector needs JavaScript. Allow it for this page.</noscript>
<script>${script}</script>
</body>
</html>
`;
  return { html, policy };
}

function toAttribute(text: string): string {
  return text.replace(/[&"<>]/g, (character) => `&#${character.charCodeAt(0)};`);
}

async function toHash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${toBase64(new Uint8Array(digest))}'`;
}
