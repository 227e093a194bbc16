// nginx with the configuration from the production example, in front of two processes of the example.
import { assert, assertEquals, assertRejects } from "@std/assert";
import { type Client, connect, McpError } from "../../src/client/client.ts";
import { textOf, until } from "../support/behaviour.ts";
import { withFiles } from "../support/command_line.ts";
import { TestIssuer } from "../support/issuer.ts";
import { findFreePort, root, type Running, start } from "../support/processes.ts";
import { needs } from "../support/required.ts";

const isDeno = typeof Deno !== "undefined";
const folders = isDeno ? [...(Deno.env.get("PATH") ?? "").split(":"), "/usr/sbin"] : [];
const nginx = folders.map((folder) => `${folder}/nginx`).find((path) => {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
});

/** Writes the example's configuration, changed to HTTP and to a free port of this machine. */
async function writeConfig(folder: string, port: number, ports: readonly number[]): Promise<string> {
  let site = await Deno.readTextFile(`${root}examples/production/nginx.conf`);
  for (
    const [from, to] of [
      ["127.0.0.1:8000", `127.0.0.1:${ports[0]}`],
      ["127.0.0.1:8001", `127.0.0.1:${ports[1]}`],
      ["listen 443 ssl", `listen 127.0.0.1:${port}`],
      ["tickets.example.com;", "localhost;"],
      [/^ *ssl_.*\n/gm, ""],
    ] as const
  ) {
    const changed = site.replace(from, to);
    assert(changed !== site, `nginx.conf does not contain ${from}`);
    site = changed;
  }
  await Deno.writeTextFile(`${folder}/site.conf`, site);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`).join(" ");
  const whole = `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr; events {}
http { access_log off; ${temporary} include ${folder}/site.conf; }`;
  await Deno.writeTextFile(`${folder}/nginx.conf`, whole);
  return `${folder}/nginx.conf`;
}

const responds = (url: string, status: number) => async () => {
  const response = await fetch(url).catch(() => undefined);
  await response?.body?.cancel();
  return response?.status === status;
};

const test = needs(
  "nginx passes calls, streams and metadata requests to two processes, and responds to all other paths with 404",
  nginx || !isDeno ? undefined : "nginx is not installed",
);

Deno.test({
  ...test,
  ignore: test.ignore || !isDeno, // Processes are started with Deno.
  async fn() {
    await using issuer = await TestIssuer.start();
    await withFiles({}, async (folder) => {
      await Deno.mkdir(`${folder}/data`);
      const port = findFreePort();
      const ports = [findFreePort(), findFreePort()];
      const origin = `http://localhost:${port}`;
      const env = {
        PUBLIC_URL: origin,
        ISSUER: issuer.name,
        MCP_SECRET: "a-secret-of-at-least-thirty-two-characters",
        METRICS_TOKEN: "a token of the scraper",
        DATA: `${folder}/data`,
        PROXIES: "127.0.0.1",
      };
      const serve = async (port: number) => {
        const words = ["deno", "run", "-A", `${root}examples/production/main.ts`];
        const running = await start(words, { env: { ...env, PORT: `${port}` } });
        await until(responds(`http://127.0.0.1:${port}/health`, 200), `the process on port ${port} listens`);
        return running;
      };
      await using first = await serve(ports[0]);
      await using second = await serve(ports[1]);
      const config = await writeConfig(folder, port, ports);
      await using proxy: Running = await start([nginx ?? "", "-p", folder, "-c", config]);
      await until(responds(`${origin}/health`, 404), "nginx listens");

      for (const path of ["/ready", "/metrics", "/tenants/acme/mcp/more", "/.well-known/oauth-protected-resource"]) {
        assert(await responds(origin + path, 404)(), path);
      }
      const path = "/tenants/acme/mcp";
      const metadata = await (await fetch(`${origin}/.well-known/oauth-protected-resource${path}`)).json();
      assertEquals(metadata.resource, origin + path);

      const claims = { aud: origin + path, scope: "tickets:read tickets:write", roles: ["acme:agent"] };
      const headers = { authorization: `Bearer ${await issuer.sign({ claims })}` };
      const open = async (era: "modern" | "legacy"): Promise<Client> => await connect(origin + path, { era, headers });
      for (const era of ["modern", "legacy"] as const) {
        await using client = await open(era);
        const { content: [, link] } = await client.callTool("open_ticket", { title: `Ticket over ${era}` });
        const { uri } = link as { readonly uri: string };
        // A change that one process announces reaches streams on every process.
        const heard: string[] = [];
        await using changes = await client.subscribe({ resourceSubscriptions: [uri] });
        (async () => {
          for await (const { method } of changes) heard.push(method);
        })();
        const id = Number(uri.split("/").at(-1));
        assertEquals(textOf(await client.callTool("close_ticket", { id })), `Closed ticket ${id}.`);
        await until(() => heard.includes("notifications/resources/updated"), "the change arrives");
      }

      // nginx skips a process that has ended.
      await using client = await open("modern");
      first.kill("SIGTERM");
      await first.finished;
      for (let at = 0; at < 8; at++) await client.callTool("list_tickets");
      // nginx uses a restarted process at once.
      await using third = await serve(ports[0]);
      second.kill("SIGTERM");
      await second.finished;
      for (let at = 0; at < 8; at++) await client.callTool("list_tickets");
      third.kill("SIGTERM");
      await third.finished;
      const error = await assertRejects(() => client.callTool("list_tickets"), McpError);
      assertEquals(error.status, 502);
      proxy.kill("SIGTERM");
    });
  },
});
