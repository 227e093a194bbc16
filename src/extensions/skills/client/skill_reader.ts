/**
 * Lists a server's skills, and reads and verifies their files.
 *
 * @see SEP-2640 (Integrity and Verification)
 */
import { parseFrontMatter } from "../front_matter.ts";
import { toDigest, toText } from "../bytes.ts";
import { toFileKey } from "../file_names.ts";
import { isObject } from "../../../core/protocol/jsonrpc.ts";
import { checkOptions, type KnownOptions } from "../../../core/known_options.ts";
import { INTERNALS } from "../../../core/internals.ts";
import type { Client } from "../../../client/calls.ts";
import { readPages } from "../../../client/pagination.ts";
import type { CountedOptions, RequestOptions } from "../../../client/rpc.ts";
import { MOST_BYTES, readEntry, type Skill, SkillError } from "./skill_entry.ts";
import { isInFolderOf, readSkillPath } from "./skill_path.ts";

/** Options of {@linkcode skillsOf}. */
export interface SkillsOfOptions {
  /** Label that distinguishes the skills of this server from skills of other servers. Defaults to an empty string. */
  readonly server?: string;
  /** Called with the error for each invalid entry, which `list` omits. */
  readonly onInvalid?: (error: SkillError) => void;
}

/** A file of a skill. */
export interface SkillContent {
  /** URI of the file. */
  readonly uri: string;
  /** Bytes of the file. Their digest equals the digest in the entry, unless the skill's files are dynamic. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Text of the file, if the bytes are valid UTF-8. */
  readonly text?: string;
}

/** The skills of a server. The methods do not cache results. */
export interface Skills {
  /** Lists the skills. A server may omit skills from its list; `get` also finds omitted skills. */
  list(options?: RequestOptions): Promise<readonly Skill[]>;
  /** Returns a skill, for example with new digests. Throws a {@linkcode SkillError} if the entry is invalid. */
  get(uri: string, options?: RequestOptions): Promise<Skill>;
  /**
   * Reads a file of a skill, by default `SKILL.md`. Throws a {@linkcode SkillError} if the skill has no such file, or
   * if the file's size, digest or front matter differs from the entry. After this error, call `get` to get the skill
   * again. If the skill's files have changed, ask the user for approval again.
   */
  read(skill: Skill, uri?: string, options?: RequestOptions): Promise<SkillContent>;
}

const OPTIONS: KnownOptions<keyof SkillsOfOptions> = { names: { server: true, onInvalid: "function" } };

/**
 * Returns the skills of a client's server. Does not send requests.
 *
 * @throws {TypeError} if an option is unknown or invalid.
 */
export function skillsOf(client: Client, options: SkillsOfOptions = {}): Skills {
  checkOptions("read skills", options, OPTIONS);
  const { server = "", onInvalid } = options;
  if (typeof server !== "string") {
    throw new TypeError("Cannot read skills: the option server is not a string; pass a label for the server");
  }
  return {
    async list(options = {}) {
      const skills: Skill[] = [];
      const { timeoutMs = TIMEOUT_MS } = options;
      const all: CountedOptions = { ...options, [INTERNALS]: { count: 0 } };
      const request = (params: { readonly cursor?: unknown }, timeoutMs: number) =>
        client.request("skills/list", params, { ...all, timeoutMs });
      for await (const { skills: page } of readPages({ what: "skills", timeoutMs, request })) {
        for (const entry of Array.isArray(page) ? page : []) {
          try {
            skills.push(readEntry(entry, server));
          } catch (error) {
            if (!(error instanceof SkillError)) throw error;
            onInvalid?.(error);
          }
        }
      }
      return skills;
    },
    async get(uri, options) {
      const { skill } = await client.request("skills/get", { uri }, options);
      const read = readEntry(skill, server);
      if (read.uri !== uri) throw new SkillError(uri, "the server returned the entry of another skill");
      return read;
    },
    async read(skill, uri = skill.uri, options) {
      const { files } = skill;
      const file = files === "dynamic" ? undefined : files.find((file) => file.uri === uri);
      if (!file && (files !== "dynamic" || !isFileOf(skill, uri))) {
        throw new SkillError(uri, "the skill has no such file");
      }
      const { contents } = await client.readResource(uri, options);
      const [content] = contents;
      if (contents.length !== 1 || content.uri !== uri) {
        throw new SkillError(uri, "the server did not return exactly this file");
      }
      const bytes = toBytes(content);
      if (!bytes) throw new SkillError(uri, "the server returned neither text nor valid Base64");
      if (bytes.length > MOST_BYTES) {
        throw new SkillError(uri, `it has ${bytes.length} bytes; at most ${MOST_BYTES} are accepted`);
      }
      if (file && bytes.length !== file.size) {
        throw new SkillError(uri, `it has ${bytes.length} bytes, but ${file.size} bytes in its entry`);
      }
      if (file && await toDigest(bytes) !== file.digest) {
        throw new SkillError(uri, "its digest differs from the digest in its entry");
      }
      const text = toText(bytes);
      if (uri === skill.uri) checkFrontMatter(skill, text);
      return { uri, bytes, ...text !== undefined && { text } };
    },
  };
}

function isFileOf(skill: Skill, uri: string): boolean {
  const [own, path] = [readSkillPath(skill.uri), readSkillPath(uri)];
  if (!own || !path || !isInFolderOf(own, path)) return false;
  // In another spelling, SKILL.md would not be compared with the front matter that the user has approved.
  return uri === skill.uri || toFileKey(own.names) !== toFileKey(path.names);
}

// Compares the front matter with the entry, because the model must receive the same front matter that the user has
// approved.
function checkFrontMatter({ uri, frontmatter }: Skill, text: string | undefined): void {
  let own: unknown;
  try {
    own = text === undefined ? undefined : parseFrontMatter(text);
  } catch {
    // A file whose front matter cannot be parsed differs from the entry too.
  }
  if (!isEqual(own, frontmatter)) {
    throw new SkillError(uri, "its front matter differs from the front matter in its entry");
  }
}

function isEqual(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => isEqual(item, b[at]));
  if (!isObject(a) || !isObject(b) || Array.isArray(a) || Array.isArray(b)) return a === b;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isEqual(a[name], b[name]));
}

function toBytes({ text, blob }: { readonly text?: unknown; readonly blob?: unknown }) {
  if (typeof text === "string") return new TextEncoder().encode(text);
  if (typeof blob !== "string") return;
  try {
    return Uint8Array.from(atob(blob), (character) => character.charCodeAt(0));
  } catch {
    return;
  }
}

/** Default timeout for requesting one page of skills, in milliseconds. */
const TIMEOUT_MS = 60_000;
