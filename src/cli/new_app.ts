/**
 * The files that `mcp new --app` creates: a server with an app, the app's page, and a test.
 */

export interface AppModules {
  readonly library: string;
  readonly apps: string;
}

export function toAppServer(name: string, { library, apps }: AppModules): string {
  return `import { createServer, tool } from ${JSON.stringify(library)};
import { app, supportsApp, ui } from ${JSON.stringify(apps)};

const dice = app({ uri: ${
    JSON.stringify(`ui://${name}`)
  }, title: "Dice", file: new URL("./app.html", import.meta.url) });

export const roll = tool({
  name: "roll",
  title: "Roll a die",
  description: "Rolls a die",
  annotations: { readOnlyHint: true, destructiveHint: false, openWorldHint: false },
  use: [ui(dice)],
  run(_input, ctx) {
    const eyes = 1 + Math.floor(6 * Math.random());
    // Clients that cannot show apps get a sentence instead of data.
    return supportsApp(ctx, dice) ? { eyes } : \`The die shows \${eyes}.\`;
  },
});

export default createServer({ name: ${JSON.stringify(name)}, version: "0.1.0", handlers: [dice, roll] });
`;
}

export function toAppPage(name: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>${name}</title>
    <style>
      body {
        margin: 0;
        padding: 16px;
        background: var(--color-background-primary, Canvas);
        color: var(--color-text-primary, CanvasText);
        font-family: var(--font-sans, system-ui, sans-serif);
      }
      output {
        display: block;
        font-size: 48px;
      }
    </style>
  </head>
  <body>
    <output></output>
    <button>Roll again</button>
    <script>
      // The server adds \`mcpApp\`, which connects this page to the client that shows the page.
      const show = ({ structuredContent }) => {
        document.querySelector("output").textContent = structuredContent.eyes;
      };
      mcpApp.on("result", show);
      document.querySelector("button").addEventListener("click", async () => show(await mcpApp.callTool("roll")));
    </script>
  </body>
</html>
`;
}

export function toAppTest(
  testing: string,
  { imports, test }: { readonly imports: string; readonly test: string },
): string {
  return `${imports}import { connectTest } from ${JSON.stringify(testing)};
import server from "./server.ts";

${test}("a client without apps gets a sentence", async () => {
  const client = await connectTest(server);
  const { content } = await client.callTool("roll");
  await client.close();
  if (!/The die shows [1-6]/.test(JSON.stringify(content))) throw new Error(JSON.stringify(content));
});

${test}("a client with apps gets the page and its data", async () => {
  const ui = { mimeTypes: ["text/html;profile=mcp-app"] };
  const client = await connectTest(server, { capabilities: { extensions: { "io.modelcontextprotocol/ui": ui } } });
  const { structuredContent } = await client.callTool("roll");
  const [resource] = await client.listResources();
  const { contents: [page] } = await client.readResource(resource.uri);
  await client.close();
  if (!/^{"eyes":[1-6]}$/.test(JSON.stringify(structuredContent))) throw new Error(JSON.stringify(structuredContent));
  if (!page.text?.includes("<output>")) throw new Error(JSON.stringify(page));
});
`;
}
