// A page that is a client of an MCP server of another origin: it signs the user in, shows the server's tools and notes,
// follows changes, and answers the questions of tools. Bundle it for browsers; see `../site.ts`.
import { connect } from "@x/mcp/client";
import { pageSignIn } from "@x/mcp/client/oauth";
import type { WebMcpModule } from "@x/mcp/web";
import { databaseTokens } from "./database_tokens.ts";

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const [state, signIn, signOut] = [find("state"), find("sign-in"), find("sign-out")];

const { server, era, keep, signIn: client } = await (await fetch("/config.json")).json();

const auth = pageSignIn({
  redirectUri: `${location.origin}/callback`,
  ...client,
  // Without a store, the tokens stay in memory, and the user signs in again after a reload.
  store: keep ? databaseTokens() : undefined,
  async open({ url, issuer, pageHost }) {
    state.textContent = "Not signed in";
    signIn.textContent = `Sign in at ${pageHost ?? new URL(issuer).host}`;
    signIn.hidden = false;
    await new Promise((resolve) => signIn.addEventListener("click", resolve, { once: true }));
    location.assign(url);
  },
});

async function start(): Promise<void> {
  // Complete the sign-in first, if the authorization server has sent the user back to this page.
  await auth.finish();
  const mcp = await connect(server, {
    auth,
    era,
    onElicit: ({ message }) => confirm(message) ? { action: "accept", content: {} } : { action: "decline" },
  });
  const info = await auth.info(server);
  state.textContent = `Connected to ${mcp.server.info?.name}${
    info ? `, signed in at ${new URL(info.issuer).host}` : ""
  }`;
  signOut.hidden = !info;
  signOut.onclick = async () => {
    await auth.signOut(server);
    await mcp.close();
    location.assign("/");
  };

  const text = async (name: string, args = {}) => {
    const { content: [first] } = await mcp.callTool(name, args);
    return first?.type === "text" ? first.text : "";
  };
  const buttons: Record<string, () => Promise<unknown>> = { clear_notes: () => text("clear_notes") };
  const show = async () => {
    const items = (await mcp.listTools()).map(({ name, description = "" }) => {
      const item = document.createElement("li");
      // `textContent`, because a description is text of the server and not HTML.
      item.textContent = `${name}: ${description}`;
      if (!buttons[name]) return item;
      const button = document.createElement("button");
      button.textContent = name;
      button.onclick = async () => {
        find("notes").textContent = String(await buttons[name]());
      };
      item.append(button);
      return item;
    });
    find("tools").replaceChildren(...items);
    find("notes").textContent = await text("list_notes");
  };
  find<HTMLFormElement>("form").onsubmit = async (event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    await text("add_note", Object.fromEntries(new FormData(form)));
    form.reset();
    await show();
  };
  const changes = await mcp.subscribe({ toolsListChanged: true });
  await show();

  // Let agents in the browser use the same tools, as the user of this page.
  const { register }: WebMcpModule = await import(/* @vite-ignore */ new URL("/webmcp.js", server).href);
  const registration = await register({
    async token() {
      const token = await auth.token({ url: server, method: "POST" });
      return typeof token === "string" ? token : undefined;
    },
  });
  find("tools").dataset.agents = registration.tools.join(" ");

  for await (const _ of changes) {
    await show();
    await registration.update();
    find("tools").dataset.agents = registration.tools.join(" ");
  }
}

start().catch((error) => {
  state.textContent = `Failed: ${error.message}`;
});
