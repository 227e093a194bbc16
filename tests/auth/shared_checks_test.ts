// One check of credentials that several requests share.
import { assertEquals } from "@std/assert";
import { SharedChecks } from "../../src/auth/shared_checks.ts";
import type { AuthRequestInfo } from "../../src/server/engine/auth.ts";

function readNothing(): never {
  throw new Error("a check read the path parameters");
}

function toInfo({ signal }: AbortController): AuthRequestInfo {
  return { transport: "http", now: 0, signal, pathParams: readNothing };
}

/** Starts a check that two other requests join. Returns what aborts each request, and the signal of the check. */
function share() {
  const checks = new SharedChecks<string>();
  const [first, second, third] = Array.from({ length: 3 }, () => new AbortController());
  let signal: AbortSignal | undefined;
  const { promise, resolve } = Promise.withResolvers<string>();
  const found = checks.start("id", toInfo(first), (info) => {
    signal = info.signal;
    return promise;
  });
  return { checks, first, second, third, found, resolve, isAborted: () => signal?.aborted };
}

Deno.test("a request that is refused after it has joined a check does not end the check for later requests", async () => {
  const { checks, second, third, found, resolve, isAborted } = share();
  const joined = checks.join("id", toInfo(second));
  second.abort();
  assertEquals([checks.has("id"), isAborted()], [true, false]);
  const later = checks.join("id", toInfo(third));
  resolve("ada");
  assertEquals(await Promise.all([found, joined, later]), ["ada", "ada", "ada"]);
  assertEquals(checks.has("id"), false);
});

Deno.test("later requests do not join a check whose first request has timed out, and the last request ends it", async () => {
  const { checks, first, second, third, found, resolve, isAborted } = share();
  const joined = checks.join("id", toInfo(second));
  first.abort();
  assertEquals([checks.join("id", toInfo(third)), isAborted()], [undefined, false]);
  second.abort();
  assertEquals(isAborted(), true);
  resolve("ada");
  assertEquals(await Promise.all([found, joined]), ["ada", "ada"]);
});

Deno.test("a check whose only request was aborted before it is aborted, and is not shared", () => {
  const checks = new SharedChecks<string>();
  const aborted = new AbortController();
  aborted.abort();
  let signal: AbortSignal | undefined;
  checks.start("id", toInfo(aborted), (info) => {
    signal = info.signal;
    return new Promise(() => {});
  });
  assertEquals([checks.has("id"), signal?.aborted], [false, true]);
});
