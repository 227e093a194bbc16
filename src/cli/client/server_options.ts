/**
 * The options and help texts that the commands for connecting to a server share: `inspect`, `call`, `task`, `read` and
 * `prompt`.
 */
import { REVISIONS } from "../protocol.ts";
import { LOG_LEVELS } from "./log_messages.ts";
import type { Options } from "../command.ts";
import { ENDPOINT_OPTIONS } from "../endpoint_options.ts";
import { SIGN_IN_OPTIONS } from "../sign_in/sign_in_options.ts";

export const SERVER_DESCRIPTION =
  "SERVER is the URL of a running server, or a file, config file or folder, as for the serve command. To start a server over stdio " +
  "instead, write its command after --.";

export const ARGUMENTS_DESCRIPTION =
  "The tool's input schema decides whether a VALUE such as 2 is read as text or as a number. Write an object as " +
  "JSON, and a list as JSON or by repeating NAME=VALUE. NAME@=FILE reads the value from a file. A single JSON " +
  "object in place of all NAME=VALUE arguments is sent unchanged.";

export const ELICITATION_DESCRIPTION =
  "The command prints questions from the server in the terminal and reads the user's answers. Without a terminal, " +
  "the command cancels each question that --answer does not answer, and exits with code 2. Ctrl-C cancels the request.";

/** The options of every command that connects to a server. */
export const SERVER_OPTIONS: Options = {
  header: {
    value: "NAME=VALUE",
    isRepeatable: true,
    text: 'HTTP header to send with every request to a URL, such as authorization="Bearer …"; may be repeated',
  },
  env: {
    value: "NAMES",
    isRepeatable: true,
    text:
      "Environment variables to pass to the command, separated by commas, in addition to basic variables such as PATH; " +
      "NAME=VALUE sets a variable; may be repeated",
  },
  ...SIGN_IN_OPTIONS,
  ...ENDPOINT_OPTIONS,
  timeout: { value: "SECONDS", text: "Time the server may take to respond; 0 means no limit (default: 30)" },
  revision: {
    value: "DATE",
    text: `Use only this protocol revision: ${REVISIONS.join(", ")} (default: the newest that the server supports)`,
    completion: REVISIONS,
  },
  json: { text: "Print one JSON document" },
};

const { json: _, revision: __, ...CONNECTION } = SERVER_OPTIONS;

/** The options of commands that compare servers with a lock file: `lock`, and `check` with `--locked`. */
export const LOCK_OPTIONS: Options = {
  ...CONNECTION,
  lock: { value: "FILE", text: "Lock file (default: mcp.lock.json)", completion: "files" },
  servers: {
    value: "FILE",
    text: "File of mcp gateway, whose servers are compared; --env names the variables that it may use",
    completion: "files",
  },
};

/** The options of commands whose server may log messages and ask questions: `call`, `task`, `read` and `prompt`. */
export const INTERACTIVE_OPTIONS: Options = {
  ...SERVER_OPTIONS,
  output: {
    value: "FILE",
    text: "Write the result to this file: binary content such as images and audio, or the text if there is no " +
      "binary content",
    completion: "files",
  },
  log: {
    value: "LEVEL",
    text: `Lowest level of log messages to print: ${LOG_LEVELS.join(", ")} or none (default: info)`,
    completion: [...LOG_LEVELS, "none"],
  },
  answer: {
    value: "ANSWER",
    isRepeatable: true,
    text: "Answer to a question from the server: NAME=VALUE fills in a field, accept takes the defaults, decline and " +
      "cancel refuse the question; may be repeated",
    completion: ["accept", "decline", "cancel"],
  },
  root: {
    value: "FOLDER",
    isRepeatable: true,
    text: "Folder that the server may work in, sent as a root; may be repeated",
    completion: "files",
  },
};
