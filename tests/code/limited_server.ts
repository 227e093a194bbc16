// A program that runs a program of code mode, in a process with few permissions, and prints the result and the faults.
import { createServer } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { ask } from "../support/requests.ts";

const fault = ({ error }: { readonly error: unknown }) => console.log(String(error));
const server = createServer({ name: "s", version: "1.0.0", handlers: [codeMode()], observer: { fault } });
const params = { name: "run_code_with_effects", arguments: { code: "return 6 * 7" } };
console.log(JSON.stringify((await ask(server, "tools/call", params)).result.content));
await server.close();
