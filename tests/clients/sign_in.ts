// Signs an agent in, and lets it call a tool that needs the access token.
import { startOidc } from "../auth/oidc.ts";
import { root, toDenoDir } from "../support/processes.ts";
import { configure, createPlace, PROMPT } from "./agent_session.ts";
import type { Agent } from "./agents/agent.ts";
import type { Check } from "./checks.ts";
import { startModel } from "./model/model.ts";
import { runProgram } from "./programs.ts";
import { openServer } from "./teed_server.ts";
import type { Tools } from "./tools.ts";

const SECONDS = 120;

/** The outcome of a sign-in. */
export interface SignIn {
  readonly checks: readonly Check[];
  /** The output of the agent. */
  readonly output: string;
}

/** Where users sign in: at an authorization server, or at GitHub, to which the server sends them with `oauthProxy`. */
export type SignInPlace = "issuer" | "github";

/** Signs in, and calls a tool. */
export async function signIn(agent: Agent, at: SignInPlace, tools: Tools): Promise<SignIn> {
  const folder = `${tools.work}/${agent.name}-sign-in-${at}`;
  const place = await createPlace(agent, { tools, folder });
  await using oidc = await startOidc();
  // This issuer registers clients. The other issuers would fetch the documents of clients from the internet.
  const issuer = oidc.issuers.second;
  await using model = await startModel([{ step: "add", tool: "add", args: { a: 4000, b: 711 } }]);
  const connection = { probe: "deno", transport: "http" } as const;
  const toEnv = (url: string) => ({ PROBE_RESOURCE: url, ...at === "issuer" && { PROBE_ISSUER: issuer } });
  await using server = await openServer(connection, { tools, folder, toEnv });
  const browser = await writeBrowser(folder, tools);
  const here = { ...place, model: model.url };
  const configured = await configure(agent, { connection, server, tools, place: here });
  const env = { ...configured, PATH: `${folder}/bin:${configured.PATH}`, BROWSER: browser, DISPLAY: ":0" };
  const outputs: string[] = [];
  const run = async () => {
    for (const words of [agent.toSignIn?.(here), agent.toCommand(here, PROMPT)]) {
      if (words) outputs.push((await runProgram(words, { cwd: place.project, env, seconds: SECONDS })).output);
    }
    return await server.entries();
  };
  const entries = [...await run()];
  const seen = model.recording.seen.get("add")?.text ?? "";
  const hasToken = entries.some(({ message, headers }) =>
    message?.method === "tools/call" && headers?.authorization?.startsWith("Bearer ")
  );
  const checks: Check[] = [{
    name: "the agent calls a tool with an access token",
    ...!(hasToken && seen.includes("4711")) && { failure: `${entries.length} messages; the model sees "${seen}"` },
  }];
  if (at === "github") {
    // The server has a new secret. The agent has a token, and perhaps an id, of the old secret.
    await server.restart();
    server.clear();
    const later = await run();
    // The script of the model has ended, so the agent only lists the tools.
    const isListed = later.some(({ from, message }) => from === "server" && Object(message?.result).tools);
    const failure = `${later.length} messages`;
    checks.push({
      name: "the agent signs in again after a change of the server's secret",
      ...!isListed && { failure },
    });
  }
  const output = outputs.join("\n");
  await Deno.writeTextFile(`${folder}/output.txt`, output);
  return { output, checks };
}

/** Writes a program that agents start instead of a browser. */
async function writeBrowser(folder: string, { deno }: Tools): Promise<string> {
  await Deno.mkdir(`${folder}/bin`, { recursive: true });
  const text = `#!/bin/sh\nexport DENO_DIR='${toDenoDir()}'\n` +
    `echo "$@" >> '${folder}/opened.txt'\n` +
    `exec '${deno}' run -A --no-check '${root}tests/clients/browser.ts' "$@" >> '${folder}/browser.txt' 2>&1\n`;
  for (const name of ["xdg-open", "sensible-browser"]) {
    await Deno.writeTextFile(`${folder}/bin/${name}`, text, { mode: 0o755 });
  }
  return `${folder}/bin/xdg-open`;
}
