/**
 * `mcp openapi`: lists the operations of an OpenAPI document, and writes a server for them.
 */
import { type Args, rejectRest, rejectSecond, toList } from "./args.ts";
import type { Command } from "./command.ts";
import { clients } from "./install/clients.ts";
import { importModule } from "./lazy_modules.ts";
import { UsageError } from "./cli_error.ts";

export const openapi: Command = {
  name: "openapi",
  summary: "List the operations of an OpenAPI document, and write a server for them",
  usage: ["openapi [OPTIONS] DOCUMENT"],
  description: [
    "DOCUMENT is a file or a URL, in JSON or YAML, of version 2.0 to 3.2. The command estimates how many tokens each " +
    "operation adds to the context of a model.",
    "With --write, it writes a server. A config file gets an entry in openapi, and a new file with code gets the source " +
    "of a server. A document from a URL is saved next to this file. If the tools would take more than 10,000 tokens, " +
    "clients search for tools. With --client, it also adds the server to the configuration of a client.",
  ],
  options: {
    tag: { value: "NAME", isRepeatable: true, text: "Select only operations with this tag; may be repeated" },
    "read-only": { text: "Leave out operations that can change data" },
    write: {
      value: "FILE",
      text: "File to write: a config file, such as mcp.jsonc, or a new file with code, such as server.ts",
      completion: "files",
    },
    "base-url": {
      value: "URL",
      text: "URL to which the server appends the paths of the document; --write requires it",
    },
    "allow-private": {
      value: "HOST",
      isRepeatable: true,
      text:
        "Host on this machine or a private network that the command and the server may reach, such as localhost:8080",
    },
    client: {
      value: "NAME",
      text: "Client to which to add the written server, such as claude-desktop; see install",
      completion: clients.map(({ name }) => name),
    },
    env: {
      value: "NAMES",
      isRepeatable: true,
      text:
        "Environment variables with the credentials of the API, such as MCP_PETS_TOKEN; with --client, their values " +
        "are passed to the server",
    },
    json: { text: "Print one JSON document" },
  },
  operands: "files",
  examples: [
    "openapi pets.yaml",
    "openapi https://api.example.com/openapi.json --tag pets --json",
    "openapi pets.yaml --base-url https://api.example.com/v1 --read-only --write mcp.jsonc",
    "openapi pets.yaml --base-url https://api.example.com --write pets.jsonc --client claude-desktop --env MCP_PETS_TOKEN",
    "openapi pets.yaml --base-url http://localhost:8080 --allow-private localhost:8080 --write server.ts",
  ],
  exitCodes: { 1: "The server of the document responded with an error" },
  run: readApi,
};

async function readApi(args: Args): Promise<void> {
  const { operands: [document], flags, all } = args;
  rejectRest(args, "openapi");
  if (document === undefined) {
    throw new UsageError("Cannot read an OpenAPI document: no document is named; name a file or a URL");
  }
  rejectSecond(args.operands, { verb: "read", limit: "openapi takes one document" });
  if ("json" in flags && "write" in flags) {
    throw new UsageError("Cannot use --json with --write: --json only prints the operations; remove one of the two");
  }
  for (const name of ["client", "env"]) {
    if (name in flags && !("write" in flags)) {
      throw new UsageError(`Cannot use --${name} without --write: no server would be written; add --write`);
    }
  }
  const { readSource, surveyApi, toJson, toReport } = await importModule<typeof import("./openapi/survey.ts")>(
    "./openapi/survey.ts",
  );
  const choice = {
    tags: all.tag ?? [],
    isReadOnly: "read-only" in flags,
    baseUrl: flags["base-url"],
    allowPrivate: all["allow-private"] ?? [],
  };
  const source = await readSource(document, choice.allowPrivate);
  const survey = surveyApi(source, choice);
  if (flags.write === undefined) return console.log("json" in flags ? toJson(survey) : toReport(survey, choice));
  const { writeApi } = await importModule<typeof import("./openapi/files.ts")>("./openapi/files.ts");
  await writeApi(flags.write, survey, choice, { client: flags.client, variables: toList(all.env) });
}
