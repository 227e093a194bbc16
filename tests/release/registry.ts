// A registry on loopback that serves one package over JSR's protocol: the files that `deno publish` would upload from a
// folder, with the same rewrites. If JSR_URL is its URL, Deno treats the package as published.
import { preparePackage } from "./prepare.ts";

/** A running registry. Disposing stops it. */
export interface Registry extends AsyncDisposable {
  /** The value for the environment variable JSR_URL, with a trailing slash. */
  readonly url: string;
  /** The files in the package, as paths such as `/mod.ts`. */
  readonly files: readonly string[];
  /** The paths that were requested. Paths in the package do not contain its name and version. */
  readonly served: readonly string[];
  /** The paths that were requested but do not exist. */
  readonly missing: readonly string[];
}

interface Config {
  readonly name: string;
  readonly version: string;
  readonly exports: Record<string, string>;
  readonly imports?: Record<string, string>;
}

function isConfig(value: unknown): value is Config {
  return typeof value === "object" && value !== null && "name" in value && "version" in value && "exports" in value;
}

/** Lists the files with `deno publish` itself, so that its rules for include, exclude and ignore apply. */
export async function listFiles(root: string, url?: string): Promise<string[]> {
  const { success, stderr } = await new Deno.Command("deno", {
    args: ["publish", "--dry-run", "--allow-dirty", "--no-check"],
    cwd: root,
    env: { NO_COLOR: "1", ...url === undefined ? {} : { JSR_URL: url } },
  }).output();
  const text = new TextDecoder().decode(stderr);
  const base = new URL(root.endsWith("/") ? root : root + "/", "file:///").href;
  const files = [...text.matchAll(/^ +(file:\S+) \(/gm)].map(([, url]) => "/" + url.slice(base.length));
  if (!success || files.length === 0) {
    throw new Error(`Cannot list the files of ${root}: deno publish printed\n${text}`);
  }
  return files;
}

/** Replaces names from the import map with their targets, in import and export statements and in `import("…")`. */
export function rewriteImports(source: string, imports: Readonly<Record<string, string>>): string {
  const pattern = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])([^"'\n]+)\2/g;
  return source.replace(pattern, (statement, lead: string, quote: string, name: string) => {
    const prefix = Object.keys(imports).find((key) => key.endsWith("/") && name.startsWith(key));
    const target = imports[name] ?? (prefix && imports[prefix] + name.slice(prefix.length));
    return target ? lead + quote + target.replace(/^npm:\//, "npm:") + quote : statement;
  });
}

async function toChecksum(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return "sha256-" + new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}

type Bodies = Map<string, Uint8Array<ArrayBuffer>>;

/** Adds the files of a package, under paths such as `/mod.ts`. */
async function addPackage(
  bodies: Bodies,
  { name, version, exports }: Config,
  files: ReadonlyMap<string, Uint8Array<ArrayBuffer>>,
): Promise<void> {
  const manifest: Record<string, { size: number; checksum: string }> = {};
  for (const [path, bytes] of files) {
    manifest[path] = { size: bytes.length, checksum: await toChecksum(bytes) };
    bodies.set(`/${name}/${version}${path}`, bytes);
  }
  const [scope, own] = name.slice(1).split("/");
  const versions = { [version]: { createdAt: "2026-01-01T00:00:00Z" } };
  const toBytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  bodies.set(`/${name}/meta.json`, toBytes({ scope, name: own, latest: version, versions }));
  bodies.set(`/${name}/${version}_meta.json`, toBytes({ manifest, exports }));
}

/** Serves the package whose deno.json is in the folder `root`, with the files prepared for publishing. */
export async function serveRegistry(root: string): Promise<Registry> {
  const bodies: Bodies = new Map();
  const served: string[] = [];
  const missing: string[] = [];
  let base = "";
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const path = new URL(request.url).pathname;
    const body = bodies.get(path);
    (body ? served : missing).push(base && path.startsWith(base) ? path.slice(base.length) : path);
    const type = path.endsWith(".ts") ? "text/typescript" : "application/json";
    return body
      ? new Response(body, { headers: { "content-type": type } })
      : new Response("not found", { status: 404, headers: { "content-type": "text/plain" } });
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const folder = await Deno.makeTempDir({ prefix: "mcp-package-" });
  try {
    await preparePackage(`${root}/`, folder);
    const config: unknown = JSON.parse(await Deno.readTextFile(`${folder}/deno.json`));
    if (!isConfig(config)) {
      throw new Error(`Cannot serve ${root}: its deno.json lacks the name, version or exports; add them`);
    }
    const names = await listFiles(folder, url);
    const files = new Map<string, Uint8Array<ArrayBuffer>>();
    for (const name of names) {
      const bytes = await Deno.readFile(folder + name);
      const source = name.endsWith(".ts") && rewriteImports(new TextDecoder().decode(bytes), config.imports ?? {});
      files.set(name, source ? new TextEncoder().encode(source) : bytes);
    }
    await addPackage(bodies, config, files);
    base = `/${config.name}/${config.version}`;
    served.length = 0;
    return { url, files: names, served, missing, [Symbol.asyncDispose]: () => server.shutdown() };
  } catch (error) {
    await server.shutdown();
    throw error;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
