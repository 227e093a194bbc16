// A registry on the loopback interface that serves one package over JSR's protocol: what `deno publish` would upload
// from a folder, rewritten as `deno publish` rewrites it. With JSR_URL set to it, Deno treats the package as published.

/** A running registry; disposing stops it. */
export interface Registry extends AsyncDisposable {
  /** For the environment variable JSR_URL, with the slash at its end. */
  readonly url: string;
  /** The files of the package, as paths such as `/mod.ts`. */
  readonly files: readonly string[];
  /** Paths that were asked for and do not exist. */
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

/** Asks `deno publish` itself, so that include, exclude and ignore rules are not guessed at here. */
export async function listFiles(root: string): Promise<string[]> {
  const { success, stderr } = await new Deno.Command("deno", {
    args: ["publish", "--dry-run", "--allow-dirty", "--no-check"],
    cwd: root,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stderr);
  const base = new URL(root.endsWith("/") ? root : root + "/", "file:///").href;
  const files = [...text.matchAll(/^ +(file:\S+) \(/gm)].map(([, url]) => "/" + url.slice(base.length));
  if (!success || files.length === 0) throw new Error(`Cannot list the files of ${root}: deno publish said\n${text}`);
  return files;
}

/** Replaces names of the import map by what they stand for, in import and export statements and in `import("…")`. */
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

/** Serves the package whose deno.json lies in the folder `root`. */
export async function serveRegistry(root: string): Promise<Registry> {
  const config: unknown = JSON.parse(await Deno.readTextFile(`${root}/deno.json`));
  if (!isConfig(config)) throw new Error(`Cannot serve ${root}: its deno.json has no name, version or exports`);
  const files = await listFiles(root);
  const base = `/${config.name}`;
  const bodies = new Map<string, Uint8Array<ArrayBuffer>>();
  const manifest: Record<string, { size: number; checksum: string }> = {};
  for (const file of files) {
    let bytes = await Deno.readFile(root + file);
    if (file.endsWith(".ts")) {
      const source = rewriteImports(new TextDecoder().decode(bytes), config.imports ?? {});
      bytes = new TextEncoder().encode(source);
    }
    manifest[file] = { size: bytes.length, checksum: await toChecksum(bytes) };
    bodies.set(`${base}/${config.version}${file}`, bytes);
  }
  const [scope, name] = config.name.slice(1).split("/");
  const toBytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  bodies.set(
    `${base}/meta.json`,
    toBytes({
      scope,
      name,
      latest: config.version,
      versions: { [config.version]: { createdAt: "2026-01-01T00:00:00Z" } },
    }),
  );
  bodies.set(`${base}/${config.version}_meta.json`, toBytes({ manifest, exports: config.exports }));

  const missing: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const path = new URL(request.url).pathname;
    const body = bodies.get(path);
    if (!body) missing.push(path);
    const type = path.endsWith(".ts") ? "text/typescript" : "application/json";
    return body
      ? new Response(body, { headers: { "content-type": type } })
      : new Response("not found", { status: 404, headers: { "content-type": "text/plain" } });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    files,
    missing,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
