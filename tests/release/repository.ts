// The URL of the repository's web page, and links to files in the repository.

/** Returns the URL of the repository that a Git remote names, such as `git@host:owner/name.git`. */
export function toWebUrl(remote: string): string {
  return remote.trim().replace(/\.git$/, "").replace(/^(?:ssh:\/\/)?git@([^:/]+)[:/]/, "https://$1/");
}

/** Returns the URL of the Git remote `origin` of a project, or `undefined` if the project has none. */
export async function readRepository(root: string): Promise<string | undefined> {
  const { success, stdout } = await new Deno.Command("git", { args: ["remote", "get-url", "origin"], cwd: root })
    .output().catch(() => ({ success: false, stdout: new Uint8Array() }));
  return success ? toWebUrl(new TextDecoder().decode(stdout)) : undefined;
}

/**
 * Returns README.md for a package. The package does not contain the files to which README.md links, so the links and
 * pictures lead to the repository. Without a repository, the links stay as they are.
 */
export function toPackageReadme(markdown: string, repository: string | undefined): string {
  if (repository === undefined) return markdown;
  return markdown.replace(
    /(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)/g,
    (_, mark: string, text: string, path: string) =>
      `${mark}${text}(${repository}/${mark ? "raw" : "blob"}/HEAD/${path})`,
  );
}
