/**
 * Names the environment variables with the credentials of an API. The document chooses parts of the names, so a name must
 * never be one that already has another meaning: its value would be sent to the server of the document.
 */
import { listVariables } from "../../ready/template.ts";
import { promptLine } from "../client/terminal_input.ts";
import { CliError, UsageError } from "../cli_error.ts";
import { platform } from "../platform.ts";
import type { ApiSurvey, UsableScheme } from "./survey.ts";

/** A security scheme with the environment variable that contains its credential. */
export interface NamedScheme extends UsableScheme {
  readonly variable: string;
}

/** Names a variable for each scheme, such as `MCP_PETS_TOKEN`. `text` is the file whose variables the names avoid. */
export function nameVariables({ name: api, schemes }: ApiSurvey, text: string): readonly NamedScheme[] {
  const taken = new Set(listVariables(text));
  return schemes.map((scheme) => {
    const words = scheme.name.replace(/([a-z\d])([A-Z])/g, "$1_$2").replace(/[^A-Za-z\d]+/g, "_").replace(
      /^_+|_+$/g,
      "",
    );
    const plain = `MCP_${api}_${words || "key"}`.toUpperCase();
    let variable = plain;
    for (let next = 2; taken.has(variable); next++) variable = `${plain}_${next}`;
    taken.add(variable);
    return { ...scheme, variable };
  });
}

/** The file to write, the URL of the API, and the variables that the user has named. */
export interface VariableUse {
  readonly file: string;
  readonly baseUrl: URL;
  readonly named: readonly string[];
}

/**
 * Asks the user whether variables that are already set contain the credentials of the API.
 *
 * @throws {CliError} if they do not, or if the user cannot be asked.
 */
export async function confirmVariables(
  schemes: readonly NamedScheme[],
  { file, baseUrl, named }: VariableUse,
): Promise<void> {
  const set = schemes.map(({ variable }) => variable).filter((name) => !named.includes(name) && platform.env(name));
  if (!set.length) return;
  const names = set.join(", ");
  const state = `the environment already has ${names}, which the server would send to ${baseUrl.host}`;
  if (!await platform.isTerminal()) {
    const options = set.map((name) => `--env ${name}`).join(" ");
    throw new UsageError(`Cannot write ${file}: ${state}; add ${options} if this is intended, or unset it first`);
  }
  const question = `${state[0].toUpperCase()}${state.slice(1)}. Continue? [y/N] `;
  const answer = await promptLine(question, new AbortController().signal);
  if (/^y(es)?$/i.test(answer ?? "")) return;
  throw new CliError(`Cannot write ${file}: ${state}; unset it, and run the command again`);
}
