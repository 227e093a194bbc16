// Runs the commands of `console` blocks, with free ports in place of the page's ports.
import { root, run, type Running, start } from "../support/processes.ts";

/** A command on a page. */
export interface Shown {
  readonly command: string;
  readonly output: string;
}

/** Returns the commands in a block, which follow `$`, each with its output. */
export function readShown(text: string): readonly Shown[] {
  return text.split(/^\$ /m).slice(1).map((part) => {
    const [command, ...lines] = part.split("\n");
    return { command, output: lines.join("\n").trimEnd() };
  });
}

/** Where the commands of a page run, and with which program. */
export interface ShellOptions {
  readonly cwd: string;
  /** The program that `mcp` stands for. */
  readonly program: string;
  /** The same program, but it passes signals on. Defaults to `program`. */
  readonly server?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the commands of one page, with free ports in place of the page's ports. */
export class Shell implements AsyncDisposable {
  readonly #options: ShellOptions;
  readonly #server: string;
  /** Variables that commands have exported. */
  readonly #exported: Record<string, string> = {};
  /** The addresses on the page, and the address that is really served for each. */
  readonly #addresses = new Map<string, string>();
  readonly #background: Running[] = [];

  constructor(options: ShellOptions) {
    this.#options = options;
    this.#server = options.server ?? options.program;
  }

  /** The environment variables for the next command. */
  get env(): Readonly<Record<string, string>> {
    return { ...this.#options.env, ...this.#exported };
  }

  /** Runs a command. Returns its output as the page would show it. */
  async run({ command, output }: Shown): Promise<string> {
    if (command.startsWith("export ")) return await this.#export(command);
    const isServer = /^mcp\b.* --http\b/.test(command);
    const printed = isServer ? await this.#serve(command) : await this.#finish(command);
    return this.#normalize(printed, output);
  }

  /** Runs a command whose variables apply to all later commands. */
  async #export(command: string): Promise<string> {
    const names = [...command.matchAll(/(\w+)=/g)].map(([, name]) => name);
    const script = `${command}\nprintf '%s\\n' ${names.map((name) => `"$${name}"`).join(" ")}`;
    const { code, stdout, stderr } = await run(["sh", "-c", script], { cwd: this.#options.cwd, env: this.env });
    if (code !== 0) return stderr;
    stdout.split("\n").slice(0, names.length).forEach((value, at) => this.#exported[names[at]] = value);
    return "";
  }

  /**
   * Starts a server. The server is stopped when it has printed its address. With `&`, the server is stopped at the end
   * of the block.
   */
  async #serve(command: string): Promise<string> {
    const { cwd } = this.#options;
    const line = command.replace(/--port \d+/, "--port 0").replace(/ &$/, "").replace(/^mcp/, `exec ${this.#server}`);
    const server = await start(["sh", "-c", line], { cwd, env: this.env });
    this.#background.push(server);
    const [printed, address] = await server.waitFor(/.* http:\/\/([\d.:]+).*\n/);
    const [, port = "3000"] = /--port (\d+)/.exec(command) ?? [];
    this.#addresses.set(`127.0.0.1:${port}`, address);
    if (!command.endsWith(" &")) await this.#stop();
    return command.endsWith(" &") ? "" : printed;
  }

  async #finish(command: string): Promise<string> {
    const { cwd, program } = this.#options;
    let line = command;
    for (const [shown, address] of this.#addresses) line = line.replaceAll(shown, address);
    const script = `mcp() { ${program} "$@"; }\n${line}`;
    const { code, stdout, stderr } = await run(["sh", "-c", script], { cwd, env: this.env });
    return code === 0 ? stdout : stdout + stderr;
  }

  /** Replaces values that differ between machines with the values on the page. */
  #normalize(printed: string, output: string): string {
    let text = printed.trimEnd();
    for (const [shown, address] of this.#addresses) text = text.replaceAll(address, shown);
    const times = output.match(/\d+ ms/g) ?? [];
    // If the CLI is installed from a registry, it needs no permission to read its own files.
    return text.replace(/\d+ ms/g, (ms) => times.shift() ?? ms)
      .replaceAll(this.#options.cwd, "/home/me/project").replaceAll(`,${root}src`, "").replaceAll(`${root}src,`, "")
      .replaceAll(`${root}mod.ts`, "jsr:@x/mcp");
  }

  /** Stops the servers in the background, and forgets their addresses. */
  async endBlock(): Promise<void> {
    await this.#stop();
    this.#addresses.clear();
  }

  async #stop(): Promise<void> {
    for (const server of this.#background.splice(0)) {
      server.kill("SIGTERM");
      await server.finished;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.endBlock();
  }
}
