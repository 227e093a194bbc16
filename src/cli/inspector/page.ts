/**
 * Builds the page as one document with inline style and script.
 *
 * @module
 */
import { createServerPanel } from "./browser/server_panel.ts";
import { createCredentials } from "./browser/credentials.ts";
import { createArgumentFields } from "./browser/argument_fields.ts";
import { createItemList } from "./browser/item_list.ts";
import { createCallRunners } from "./browser/call_runner.ts";
import { createCompoundControls } from "./browser/compound_controls.ts";
import { createConnectionDialog } from "./browser/connection_dialog.ts";
import { createValueControls } from "./browser/value_controls.ts";
import { createDom } from "./browser/dom.ts";
import { createForms } from "./browser/forms.ts";
import { createJsonTools } from "./browser/json_tools.ts";
import { createTransport } from "./browser/transport.ts";
import { createSubscription } from "./browser/subscription.ts";
import { createItemLists } from "./browser/item_lists.ts";
import { createMessageLog } from "./browser/message_log.ts";
import { createMarkdown } from "./browser/markdown.ts";
import { createItemPanels } from "./browser/item_panels.ts";
import { createQuestionDialogs } from "./browser/question_dialogs.ts";
import { createSchemaReader } from "./browser/schema_reader.ts";
import { createContentView } from "./browser/content_view.ts";
import { type Config, type Parts, startPage } from "./browser/page_start.ts";
import { createTabs } from "./browser/tabs.ts";
import { createUriTemplates } from "./browser/uri_template.ts";
import { createTextViewer } from "./browser/text_viewer.ts";
import { createSubscriptionPanel } from "./browser/subscription_panel.ts";
import { createRpcClient } from "./browser/rpc_client.ts";
import { style } from "./style.ts";

const parts: Parts = {
  createServerPanel,
  createCredentials,
  createArgumentFields,
  createItemList,
  createCallRunners,
  createCompoundControls,
  createConnectionDialog,
  createValueControls,
  createDom,
  createForms,
  createJsonTools,
  createTransport,
  createSubscription,
  createItemLists,
  createMessageLog,
  createMarkdown,
  createItemPanels,
  createQuestionDialogs,
  createSchemaReader,
  createContentView,
  createTabs,
  createUriTemplates,
  createTextViewer,
  createSubscriptionPanel,
  createRpcClient,
};

/** A page and its content security policy. */
export interface Page {
  readonly html: string;
  /** The value of the `Content-Security-Policy` header. */
  readonly policy: string;
}

/** Builds the page. It runs only its own script and style, loads nothing, and connects only to its own server. */
export async function buildPage(config: Config): Promise<Page> {
  const script = toScript(config);
  const policy = [
    "default-src 'none'",
    `script-src ${await toHash(script)}`,
    `style-src ${await toHash(style)}`,
    "connect-src 'self'",
    "img-src data:",
    "media-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    // Text can never become markup or code.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
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

/** The script consists of the source texts of functions, from which the runtime has removed the types. */
function toScript(config: Config): string {
  const list = Object.entries(parts).map(([name, part]) => `${name}: ${part}`).join(",\n");
  const script = `"use strict";\n(${startPage})(globalThis, { config: ${
    JSON.stringify(config)
  }, parts: {\n${list}\n} });\n`;
  // Sequences that would end the element or begin a comment occur only in strings, where they can be escaped.
  return script.replace(/<(?=\/script|!--|script)/gi, "\\x3c");
}

async function toHash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`;
}
