// Runs the clients where no request can leave the machine: in a network namespace that has only a loopback interface. A
// process namespace ends everything that a client has left running. Both work for root, and for users whose system
// allows user namespaces. Deno only.

const FLAGS = ["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** Returns the reason why programs cannot run in a namespace here; `undefined` if they can. */
export async function findObstacle(): Promise<string | undefined> {
  const { success, stderr } = await new Deno.Command("unshare", { args: toArgs(["true"]) }).output().catch(() => ({
    success: false,
    stderr: new TextEncoder().encode("there is no unshare"),
  }));
  return success ? undefined : `no network namespace: ${new TextDecoder().decode(stderr).trim()}`;
}

/** Runs a command in a namespace, and returns its exit code. */
export async function runIsolated(words: readonly string[]): Promise<number> {
  const child = new Deno.Command("unshare", { args: toArgs(words), stdin: "null" }).spawn();
  const end = () => child.kill("SIGTERM");
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, end);
  const { code } = await child.status;
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.removeSignalListener(signal, end);
  return code;
}

function toArgs(words: readonly string[]): string[] {
  return [...FLAGS, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", ...words];
}

/** Throws if the process can reach anything but this machine. */
export function requireIsolation(): void {
  const others = Deno.networkInterfaces().filter(({ name }) => name !== "lo");
  if (!others.length) return;
  throw new Error(
    `Cannot start clients: the network interfaces ${others.map(({ name }) => name).join(", ")} may reach other ` +
      "machines; run deno task clients",
  );
}
