/**
 * Looks up the addresses of host names.
 */
import { deno, findProcess } from "../core/runtime.ts";
import { hasErrorCode } from "../core/kit/error_code.ts";

/** `port` is the port to which the caller will connect. Throws if the host name has no address. */
export async function lookUp(hostname: string, port: number): Promise<readonly string[]> {
  try {
    const { promises } = findProcess().getBuiltinModule("dns");
    return (await promises.lookup(hostname, { all: true })).map(({ address }) => address);
  } catch (error) {
    if (!deno) throw error;
    // On Deno, a network permission for a single port does not allow DNS lookups. Connect to the host instead, and read
    // the address from the connection.
    const connection = await deno.connect({ hostname, port }).catch((reason) => {
      throw hasErrorCode(reason) ? reason : error;
    });
    connection.close();
    return [connection.remoteAddr.hostname];
  }
}
