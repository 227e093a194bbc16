/**
 * The published rules of the directories of Claude and ChatGPT, as far as a program can check them. docs/reference/directories.md
 * has the source of each rule, by its number.
 */
import type { ListedResource, ListedTool } from "../client/client.ts";
import { isObject } from "../core/kit/json.ts";
import { isPrivateHost } from "../core/kit/private_hosts.ts";
import { eachSubschema, listChoices } from "../core/schema/walker.ts";
import { toList } from "./args.ts";
import { UsageError } from "./cli_error.ts";
import type { Option } from "./command.ts";
import type { Finding, Problem } from "./finding.ts";
import { findSteering } from "./model_text.ts";

/** A directory in which users of a client find servers. */
export type Directory = "claude" | "chatgpt";

const NAMES: Readonly<Record<Directory, string>> = { claude: "Claude's directory", chatgpt: "ChatGPT's directory" };

const ALL: readonly Directory[] = ["claude", "chatgpt"];

/** The option `--for`. */
export const FOR: Option = {
  value: "DIRECTORIES",
  isRepeatable: true,
  text: "Also check the published rules of these directories: claude or chatgpt, or both with a comma",
  completion: [...ALL, ALL.join(",")],
};

/** @throws {UsageError} if there is no such directory. */
export function readDirectories(values: readonly string[] | undefined): readonly Directory[] {
  return toList(values).map((name) => {
    const known = ALL.find((each) => each === name);
    if (known) return known;
    throw new UsageError(
      `Cannot use --for ${name}: there is no such directory; write claude, chatgpt, or both with a comma`,
    );
  });
}

/** A schema of an argument, or of a part of an argument. */
interface Part {
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

/** Lists the named parts of a schema, at any depth. */
export function listParts(root: unknown): readonly Part[] {
  const found: Part[] = [];
  const queue = [root];
  // Use a loop instead of recursion, because a schema may be nested more deeply than the stack allows.
  while (queue.length) {
    const next = queue.pop();
    if (!isObject(next)) continue;
    eachSubschema(next, (sub, keyword, name) => {
      queue.push(sub);
      if (keyword === "properties" && name !== undefined && isObject(sub)) found.push({ name, schema: sub });
    });
  }
  return found;
}

/** Splits a name into lowercase words, such as `deleteUser` into `delete` and `user`. */
function toWords(name: string): readonly string[] {
  return name.replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2").toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
}

const READING = new Set("get list search find read fetch query describe retrieve lookup".split(" "));
const CHANGING = new Set(
  "create delete update remove send purge destroy revoke overwrite insert upsert write save rename".split(" "),
);
const DELETING = new Set("delete remove purge destroy revoke overwrite".split(" "));
/** Words that make a name with a verb the name of a thing, such as `update_history`. */
const THINGS = new Set("status history info log logs count details stats preview policy".split(" "));

/** Reports hints that contradict a name or each other. A name is a guess, so the report is a warning. */
export function findContradiction({ name, annotations = {} }: ListedTool): Problem | undefined {
  const { readOnlyHint, destructiveHint } = annotations;
  if (readOnlyHint && destructiveHint) {
    const fix = "remove one of the two hints";
    return { level: "error", rule: "D03", state: "it has both readOnlyHint and destructiveHint", fix };
  }
  const words = toWords(name);
  const verb = words.find((word) => READING.has(word) || CHANGING.has(word)) ?? "";
  if (THINGS.has(words.at(-1) ?? "")) return;
  const toFinding = (hint: string, fix: string) =>
    ({ level: "warning", rule: "D04", state: `its name says ${verb}, but ${hint}`, fix }) as const;
  if (CHANGING.has(verb) && readOnlyHint === true) {
    return toFinding("readOnlyHint is true", "set readOnlyHint: false if the tool changes something");
  }
  if (DELETING.has(verb) && destructiveHint === false) {
    return toFinding("destructiveHint is false", "set destructiveHint: true if the tool deletes or overwrites data");
  }
  // Elsewhere, such a word is often a thing, as in `run_query` or `mark_as_read`.
  const begins = words[0] === verb || words[1] === verb && words.length > 2;
  if (begins && READING.has(verb) && destructiveHint === true && !words.some((word) => CHANGING.has(word))) {
    return toFinding("destructiveHint is true", "set readOnlyHint: true and destructiveHint: false if it only reads");
  }
}

export interface DirectoryListing {
  readonly tools: readonly ListedTool[];
  readonly instructions?: string;
  readonly resources: readonly ListedResource[];
}

/** Reports what the directories refuse (an error), or may refuse (a warning). */
export function checkDirectories(
  { tools, instructions, resources }: DirectoryListing,
  directories: readonly Directory[],
): readonly Finding[] {
  if (!directories.length) return [];
  const checked = { directories, resources };
  return [
    ...tools.flatMap((tool) => {
      const findings = TOOL_RULES.flatMap((check) => check(tool, checked));
      return findings.map((finding) => ({ place: `tool ${tool.name}`, ...finding }));
    }),
    ...checkSteering([instructions], checked).map((finding) => ({ place: "instructions", ...finding })),
  ];
}

interface Checked {
  readonly directories: readonly Directory[];
  readonly resources: readonly ListedResource[];
}

type Rule = (tool: ListedTool, checked: Checked) => readonly Problem[];

/** Names the chosen ones of some directories, such as `Claude's directory and ChatGPT's directory`. */
function nameChosen({ directories }: Pick<Checked, "directories">, among: readonly Directory[] = ALL): string {
  const chosen = directories.filter((each) => among.includes(each));
  return chosen.length > 1 ? "both directories" : chosen.map((each) => NAMES[each]).join();
}

/** Whether a verb that follows {@linkcode nameChosen} ends with an `s`. */
function refuse(checked: Checked, among?: readonly Directory[]): string {
  const name = nameChosen(checked, among);
  return `${name} ${name.startsWith("both") ? "refuse" : "refuses"}`;
}

const checkTitle: Rule = ({ title, annotations }, checked) => {
  if (!checked.directories.includes("claude") || (title ?? annotations?.title)?.trim()) return [];
  return [{
    level: "error",
    rule: "D01",
    state: `it has no title, and ${NAMES.claude} refuses such a tool`,
    fix: "set title",
  }];
};

const HINTS = ["readOnlyHint", "destructiveHint", "openWorldHint"] as const;

const checkHints: Rule = ({ annotations = {} }, checked) => {
  const missing = HINTS.filter((hint) => typeof annotations[hint] !== "boolean");
  // The directory asks for the hint that applies.
  const lacksApplicable = annotations.readOnlyHint !== true && missing.includes("destructiveHint");
  const by = checked.directories.filter((each) => each === "chatgpt" ? missing.length : lacksApplicable);
  if (!by.length) return [];
  const named = by.includes("chatgpt") ? missing : HINTS.slice(0, 2).filter((hint) => missing.includes(hint));
  const state = `it does not set ${toAnd(named)}, and ${refuse({ ...checked, directories: by })} such a tool`;
  return [{ level: "error", rule: "D02", state, fix: `set annotations: { ${named.join(", ")} }` }];
};

function toAnd(words: readonly string[]): string {
  return [words.slice(0, -1).join(", "), ...words.slice(-1)].filter(Boolean).join(" and ");
}

const MAX_NAME = 64;

const checkName: Rule = ({ name }, { directories }) => {
  if (directories.includes("claude") && name.length > MAX_NAME) {
    const state = `its name has ${name.length} characters, and ${NAMES.claude} takes at most ${MAX_NAME}`;
    return [{ level: "error", rule: "D05", state, fix: "shorten the name" }];
  }
  const praise = toWords(name).find((word) => ["best", "official"].includes(word));
  if (!directories.includes("chatgpt") || praise === undefined && !/pick_?me/i.test(name)) return [];
  const state = `its name praises the tool, and ${NAMES.chatgpt} refuses promotional names`;
  return [{ level: "warning", rule: "D06", state, fix: "name what the tool does" }];
};

function checkSteering(texts: readonly (string | undefined)[], checked: Checked): readonly Problem[] {
  const found = texts.map((text) => text && findSteering(text)).find(Boolean);
  if (!found) return [];
  const state = `its text may steer the model away from other tools (${toQuote(found)}), and ${refuse(checked)} that`;
  return [{ level: "warning", rule: "D10", state, fix: "describe only what this server does, and when" }];
}

function toQuote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}

const SAFE = ["get", "head", "options"];
const UNSAFE = ["post", "put", "patch", "delete"];
const SELECTOR = /^(action|operation|op|command|cmd|mode|verb|method|http_?method)$/i;
const ADDRESS = /^(url|uri|path|endpoint|api_?path|request_?path)$/i;

const checkMixed: Rule = ({ inputSchema: { properties } }, checked) => {
  const parts = Object.entries(isObject(properties) ? properties : {});
  for (const [name, schema] of parts) {
    if (!SELECTOR.test(name) || !isObject(schema)) continue;
    const values = (listChoices(schema) ?? []).map(({ value }) => String(value).toLowerCase());
    const isMethod = /method|verb/i.test(name);
    const hasAddress = parts.some(([each]) => ADDRESS.test(each));
    const isFree = isMethod && hasAddress && !values.length && schema.type === "string";
    const has = (verbs: readonly string[]) => values.some((value) => verbs.includes(value));
    if (isFree || isMethod && has(SAFE) && has(UNSAFE)) {
      const state = `its argument ${name} chooses between reading and changing, and ${refuse(checked)} such a tool`;
      return [{ level: "error", rule: "D11", state, fix: SPLIT }];
    }
    const verbs = values.map((value) => toWords(value)[0] ?? "");
    if (verbs.some((verb) => READING.has(verb)) && verbs.some((verb) => CHANGING.has(verb) || verb === "new")) {
      const state = `its argument ${name} seems to choose between reading and changing, and ${
        refuse(checked)
      } such a tool`;
      return [{ level: "warning", rule: "D11", state, fix: SPLIT }];
    }
  }
  return [];
};

const SPLIT = "make one tool that reads, and a tool for each change";

const checkExecutor: Rule = ({ name, description = "", inputSchema: { properties } }, checked) => {
  const parts = Object.entries(isObject(properties) ? properties : {});
  const named = parts.some(([key, schema]) =>
    /^((tool|operation|endpoint)(_?(name|id))?|name)$/i.test(key) && isObject(schema) && schema.type === "string" &&
    !listChoices(schema)
  );
  const open = parts.some(([key, schema]) =>
    /^((tool|operation)_?)?(arguments|args|params|parameters|input)$/i.test(key) && isObject(schema) &&
    schema.type === "object" && !Object.keys(Object(schema.properties)).length
  );
  const text = `${toWords(name).join(" ")} ${description}`;
  const isRelay = named && open && /\b(tool|operation|endpoint)s?\b/i.test(text);
  const takesCode = parts.some(([key, schema]) =>
    /^(code|program|script)$/i.test(key) && Object(schema).type === "string"
  );
  const runsCalls = takesCode &&
    /\b(code|program|script)s?\b[^.]*\bcalls?\b[^.]*\b(tool|operation|endpoint)s?\b/i.test(text);
  if (!isRelay && !runsCalls) return [];
  const isForAll = checked.directories.includes("chatgpt");
  const refusal = isForAll
    ? `${NAMES.chatgpt} refuses such a tool`
    : `${NAMES.claude} asks for a tool for each operation`;
  const state = `it calls what its arguments name, and ${refusal}`;
  const fix =
    "list each tool itself; for toolSearch() and codeMode(), submit the URL with ?search=off, and check with MCP_SEARCH=off";
  return [{ level: isForAll ? "error" : "warning", rule: "D12", state, fix }];
};

const checkFreeform: Rule = ({ description = "", inputSchema }, { directories }) => {
  if (!directories.includes("claude")) return [];
  const names = Object.keys(Object(inputSchema.properties));
  const isFree = names.some((name) => /^(endpoint|api_?path|request_?path|graphql(_?query)?)$/i.test(name)) ||
    names.some((name) => /^(http_?)?method$/i.test(name)) && names.some((name) => ADDRESS.test(name));
  if (!isFree || /https?:\/\/|\b\p{Lu}[\w.]*\s+(\w+\s+)?API\b/u.test(description)) return [];
  const state = `it takes a free path or query, and ${NAMES.claude} asks that the description then names the API`;
  return [{ level: "warning", rule: "D13", state, fix: "add the name of the API, or a link to its documentation" }];
};

/** Compares names without their case and separators. */
function isOneOf(name: string, names: string): boolean {
  return names.split(" ").includes(name.replace(/[^a-z0-9]/gi, "").toLowerCase());
}

const CONVERSATION =
  "conversationhistory conversationcontext conversationlog conversationtranscript conversationsofar " +
  "chathistory chatcontext chatlog chattranscript fullconversation previousmessages previousturns priorturns " +
  "messagehistory";
const INTENT = "intent userintent userrequest usergoal usermessage userprompt originalprompt originalrequest " +
  "originalmessage taskathand"; // the last is INTENT_ARGUMENT of the layer intent()
const RESTRICTED =
  "password passwd passphrase apikey secretkey clientsecret accesstoken refreshtoken authtoken bearertoken " +
  "privatekey ssn socialsecuritynumber creditcard creditcardnumber cardnumber cvv cvc otp otpcode mfacode totp totpcode " +
  "twofactorcode passportnumber";
const CONVERSATION_TEXT =
  /\b(full|entire|whole|complete|previous|prior)\s+(chat|conversation)(\s+(history|transcript|log))?\b|\b(chat|conversation) (history|transcript|so far)\b|\b(user'?s?|users') (exact|verbatim|original|raw) (words|message|prompt|text)\b/i;

const checkInputs: Rule = ({ inputSchema }, checked) => {
  const findings: Problem[] = [];
  const parts = listParts(inputSchema).filter(({ schema }) => schema.type !== "boolean");
  for (const { name, schema } of parts) {
    const said = String(schema.description ?? "");
    if (isOneOf(name, CONVERSATION)) {
      const state = `its argument ${name} asks for the conversation, and ${refuse(checked)} such a tool`;
      findings.push({ level: "error", rule: "D14", state, fix: "ask only for what the tool needs" });
    } else if (CONVERSATION_TEXT.test(said)) {
      const state = `its argument ${name} may ask for the conversation, and ${refuse(checked)} such a tool`;
      findings.push({ level: "warning", rule: "D14", state, fix: "ask only for what the tool needs" });
    } else if (isOneOf(name, INTENT)) {
      const state = `its argument ${name} may collect what the user says, and ${nameChosen(checked)} allow${
        nameChosen(checked).startsWith("both") ? "" : "s"
      } only what the tool needs`;
      findings.push({ level: "warning", rule: "D15", state, fix: "ask for the task in a few words, or for nothing" });
    }
    if (checked.directories.includes("chatgpt") && isOneOf(name, RESTRICTED)) {
      const state = `its argument ${name} asks for a secret, and ${NAMES.chatgpt} refuses such a tool`;
      findings.push({ level: "error", rule: "D16", state, fix: "remove the argument; use sign-in for credentials" });
    }
  }
  const names = parts.map(({ name }) => name);
  if (
    checked.directories.includes("chatgpt") && names.some((name) => isOneOf(name, "lat latitude")) &&
    names.some((name) => isOneOf(name, "lon lng long longitude"))
  ) {
    const state = `it asks for coordinates, which ${NAMES.chatgpt} asks to avoid`;
    findings.push({ level: "warning", rule: "D17", state, fix: "use the location that the client shares, or say why" });
  }
  return findings;
};

const checkOutput: Rule = ({ outputSchema }, { directories }) => {
  if (outputSchema || !directories.includes("chatgpt")) return [];
  const state = `it has no output schema, and OpenAI's preparation of submissions warns of that`;
  return [{ level: "warning", rule: "D18", state, fix: "set output if the tool returns data" }];
};

const checkApp: Rule = ({ _meta }, { directories, resources }) => {
  const { resourceUri } = Object(Object(_meta).ui);
  if (typeof resourceUri !== "string") return [];
  const listed = Object(resources.find(({ uri }) => uri === resourceUri)?._meta);
  const { domain, csp } = Object(listed.ui);
  const findings: Problem[] = [];
  if (directories.includes("chatgpt")) {
    const missing = [
      ...domain ?? listed["openai/widgetDomain"] ? [] : ["domain"],
      ...csp ?? listed["openai/widgetCSP"] ? [] : ["csp"],
    ];
    const state = `its app ${resourceUri} has no ${missing.join(" and no ")}, and ${NAMES.chatgpt} refuses such an app`;
    const fix = `set ${
      missing.join(" and ")
    } of app(); _meta: { "openai/widgetDomain": … } sets the domain for ChatGPT only`;
    if (missing.length) findings.push({ level: "error", rule: "D19", state, fix });
  }
  if (
    directories.includes("claude") && domain !== undefined && !/^[\w-]+\.claudemcpcontent\.com$/.test(String(domain))
  ) {
    const state = `its app ${resourceUri} has a domain that Claude does not take`;
    const fix = 'remove domain, and set _meta: { "openai/widgetDomain": … } for ChatGPT';
    findings.push({ level: "error", rule: "D19", state, fix });
  }
  return findings;
};

const TOOL_RULES: readonly Rule[] = [
  checkTitle,
  checkHints,
  checkName,
  ({ title, description }, checked) => checkSteering([title, description], checked),
  checkMixed,
  checkExecutor,
  checkFreeform,
  checkInputs,
  checkOutput,
  checkApp,
];

/** Checks the URL of a running server. */
export function checkUrl(url: string, directories: readonly Directory[]): readonly Problem[] {
  const { protocol, hostname, searchParams } = new URL(url);
  const checked = { directories, resources: [] };
  const findings: Problem[] = [];
  if (!directories.length) return findings;
  if (protocol !== "https:" || isPrivateHost(hostname)) {
    const state = `the URL is ${protocol === "https:" ? "not public" : "not an https URL"}, and ${
      refuse(checked)
    } such a server`;
    findings.push({ level: "error", rule: "D20", state, fix: "examine the public https URL that you submit" });
  }
  const secret = [...searchParams.keys()].find((name) => isOneOf(name, "token accesstoken apikey key secret"));
  if (secret !== undefined && directories.includes("claude")) {
    const state = `the URL has a credential (${secret}), and ${NAMES.claude} refuses such a server`;
    findings.push({ level: "error", rule: "D20", state, fix: "use OAuth, or no credential" });
  }
  return findings;
}

/** A question of a review that no program can answer. */
export interface Question {
  readonly directories: readonly Directory[];
  readonly text: string;
}

const QUESTIONS: readonly Question[] = [
  { directories: ALL, text: "Do the hints and descriptions of all tools match what the tools do, also indirectly?" },
  { directories: ["claude"], text: "Do tools without readOnlyHint and destructiveHint only add data?" },
  { directories: ALL, text: "Does a reviewer get a test account with data, without a second factor?" },
  { directories: ALL, text: "Is there a privacy policy: what is collected, why, for whom, how long?" },
  { directories: ALL, text: "Is there public documentation, and an address for support?" },
  { directories: ["claude"], text: "Are there at least three working examples of prompts?" },
  {
    directories: ["chatgpt"],
    text: "Are there exactly five test cases, three that must not call a tool, and a recording?",
  },
  { directories: ["chatgpt"], text: "Does the host serve the token at /.well-known/openai-apps-challenge?" },
  { directories: ["chatgpt"], text: "Is the identity of the publisher verified?" },
  {
    directories: ["claude"],
    text: "If the server requires a sign-in, is it OAuth? (mcp doctor --for claude checks the URL.)",
  },
  { directories: ALL, text: "Do you own the API that the tools call, or have permission to call it?" },
  {
    directories: ALL,
    text: "Does no tool move money, or advertise? For Claude: does none generate media with a model?",
  },
  {
    directories: ["chatgpt"],
    text: "Do results contain only what was asked for, without internal ids, logs and timestamps?",
  },
  {
    directories: ["claude"],
    text: "Does each result have less than 150,000 characters (25,000 tokens in Claude Code)?",
  },
  { directories: ALL, text: "Does each tool succeed with valid arguments, and explain what is wrong with others?" },
];

/** Lists the questions of the reviews of these directories. */
export function listQuestions(directories: readonly Directory[]): readonly Question[] {
  return QUESTIONS.flatMap((each) => {
    const own = each.directories.filter((directory) => directories.includes(directory));
    return own.length ? [{ ...each, directories: own }] : [];
  });
}

/** Returns the questions as text. Empty without directories. */
export function toQuestionList(directories: readonly Directory[]): string {
  const lines = listQuestions(directories).map((each) =>
    `  ${each.text}${directories.length > each.directories.length ? ` (${each.directories})` : ""}`
  );
  return lines.length ? ["", "Questions that only you can answer:", ...lines].join("\n") : "";
}
