// What the run has to know about an agent: how to configure its model, and how to start it with a prompt.

/** Where an agent runs. */
export interface Place {
  /** The home folder of the agent, which is new for each run. */
  readonly home: string;
  /** The working directory of the agent. */
  readonly project: string;
  /** The origin of the fake model. */
  readonly model: string;
  /** The folder that contains the `node_modules` of the agent. */
  readonly packages: string;
}

/** An agent with a command line. */
export interface Agent {
  /** The name on the command line, and in the record. */
  readonly name: string;
  readonly title: string;
  /** The name of the client for `mcp install`. */
  readonly installName: string;
  /** Writes the settings of the model. `mcp install` adds the server to the same files later. */
  readonly writeSettings?: (place: Place) => Promise<void>;
  /** Environment variables, such as the URL of the model. */
  readonly toEnv: (place: Place) => Readonly<Record<string, string>>;
  /** The command that signs in to the server. Without this member, the sign-in is not tried. */
  readonly toSignIn?: (place: Place) => readonly string[];
  /** The command that sends a prompt to the model, allows every call, and ends with the model's answer. */
  readonly toCommand: (place: Place, prompt: string) => readonly string[];
}

/** Writes a JSON file below a folder. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  await writeText(path, JSON.stringify(value, null, 2) + "\n");
}

/** Writes a text file, and the folders that contain the file. */
export async function writeText(path: string, text: string): Promise<void> {
  await Deno.mkdir(path.replace(/\/[^/]*$/, ""), { recursive: true });
  await Deno.writeTextFile(path, text);
}
