/**
 * Opens pages in the user's browser.
 */
import { platform } from "../platform.ts";

/**
 * The programs that open a page, by operating system. The URL of the page is added as the last argument. Programs are
 * started without a shell.
 */
const OPENERS: Readonly<Record<string, readonly string[]>> = {
  windows: ["rundll32", "url.dll,FileProtocolHandler"],
  darwin: ["open"],
};

/** Returns the command that opens a page. Returns `undefined` if no browser can be opened in this session. */
function findOpener(): readonly string[] | undefined {
  const chosen = platform.env("BROWSER");
  if (chosen) return [chosen];
  const opener = OPENERS[platform.os];
  if (opener) return opener;
  return platform.env("DISPLAY") || platform.env("WAYLAND_DISPLAY") ? ["xdg-open"] : undefined;
}

/** Opens a page. Returns whether a program for opening the page was started. */
export async function openBrowser(url: string): Promise<boolean> {
  const [program, ...args] = findOpener() ?? [];
  if (program === undefined || !/^https?:/.test(url)) return false;
  const { spawn } = process.getBuiltinModule("child_process");
  const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
  const { promise, resolve } = Promise.withResolvers<boolean>();
  child.on("error", () => resolve(false));
  child.on("spawn", () => resolve(true));
  child.unref();
  return await promise;
}
