/**
 * The page as one text: markup, style and script, with nothing to load.
 *
 * @module
 */
import { createAbout } from "./browser/about.ts";
import { createAccess } from "./browser/access.ts";
import { createArguments } from "./browser/arguments.ts";
import { createBrowse } from "./browser/browse.ts";
import { createCalls } from "./browser/calls.ts";
import { createCompounds } from "./browser/compounds.ts";
import { createConnecting } from "./browser/connecting.ts";
import { createControls } from "./browser/controls.ts";
import { createDom } from "./browser/dom.ts";
import { createForms } from "./browser/forms.ts";
import { createJson } from "./browser/json.ts";
import { createLine } from "./browser/line.ts";
import { createListener } from "./browser/listen.ts";
import { createLists } from "./browser/lists.ts";
import { createLog } from "./browser/log.ts";
import { createMarkdown } from "./browser/markdown.ts";
import { createPanels } from "./browser/panels.ts";
import { createQuestions } from "./browser/questions.ts";
import { createSchemaReader } from "./browser/schema.ts";
import { createShow } from "./browser/show.ts";
import { type Config, type Parts, start } from "./browser/start.ts";
import { createTabs } from "./browser/tabs.ts";
import { createTemplates } from "./browser/template.ts";
import { createViewer } from "./browser/viewer.ts";
import { createWatch } from "./browser/watch.ts";
import { createWire } from "./browser/wire.ts";
import { style } from "./style.ts";

const parts: Parts = {
  createAbout,
  createAccess,
  createArguments,
  createBrowse,
  createCalls,
  createCompounds,
  createConnecting,
  createControls,
  createDom,
  createForms,
  createJson,
  createLine,
  createListener,
  createLists,
  createLog,
  createMarkdown,
  createPanels,
  createQuestions,
  createSchemaReader,
  createShow,
  createTabs,
  createTemplates,
  createViewer,
  createWatch,
  createWire,
};

/** A page, and the policy under which a browser shall run it. */
export interface Page {
  readonly html: string;
  /** Value of the header `Content-Security-Policy`. */
  readonly policy: string;
}

/** Makes the page. Only its own script and style run, it loads nothing, and it calls nobody but its own server. */
export async function toPage(config: Config): Promise<Page> {
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
    // No text can become markup or code, whatever the script does.
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
<noscript>The inspector is a program: allow JavaScript for this page.</noscript>
<script>${script}</script>
</body>
</html>
`;
  return { html, policy };
}

// The functions are sent as they stand: the runtime has taken their types away.
function toScript(config: Config): string {
  const list = Object.entries(parts).map(([name, part]) => `${name}: ${part}`).join(",\n");
  const script = `"use strict";\n(${start})(globalThis, { config: ${
    JSON.stringify(config)
  }, parts: {\n${list}\n} });\n`;
  // What would end the element, or begin a comment in it, stands in strings only; there it may be written like this.
  return script.replace(/<(?=\/script|!--|script)/gi, "\\x3c");
}

async function toHash(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `'sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}'`;
}
