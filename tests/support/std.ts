// Types for the assertions, which come from npm as plain JavaScript, and support for expected values that contain
// messages. Functions that narrow have an explicit `asserts` type, because TypeScript does not narrow through an
// inferred type.
import * as untyped from "deno-std/assert";
import { findSentence, hasSentence, resolveSentences } from "./messages.ts";

// deno-lint-ignore no-explicit-any
type ErrorClass<E extends Error> = abstract new (...args: any[]) => E;

interface Assertions {
  assert(condition: unknown, message?: string): asserts condition;
  assertFalse(condition: unknown, message?: string): void;
  assertEquals<T>(actual: T, expected: T, message?: string): void;
  assertNotEquals<T>(actual: T, expected: T, message?: string): void;
  assertStrictEquals<T>(actual: unknown, expected: T, message?: string): asserts actual is T;
  assertNotStrictEquals<T>(actual: T, expected: T, message?: string): void;
  assertExists<T>(actual: T, message?: string): asserts actual is NonNullable<T>;
  assertMatch(actual: string, expected: RegExp, message?: string): void;
  assertNotMatch(actual: string, expected: RegExp, message?: string): void;
  assertStringIncludes(actual: string, expected: string, message?: string): void;
  assertArrayIncludes<T>(actual: ArrayLike<T>, expected: ArrayLike<T>, message?: string): void;
  // deno-lint-ignore no-explicit-any
  assertObjectMatch(actual: Record<PropertyKey, any>, expected: Record<PropertyKey, unknown>, message?: string): void;
  assertInstanceOf<E>(
    actual: unknown,
    // deno-lint-ignore no-explicit-any
    expected: abstract new (...args: any[]) => E,
    message?: string,
  ): asserts actual is E;
  assertGreater<T>(actual: T, expected: T, message?: string): void;
  assertGreaterOrEqual<T>(actual: T, expected: T, message?: string): void;
  assertLess<T>(actual: T, expected: T, message?: string): void;
  assertLessOrEqual<T>(actual: T, expected: T, message?: string): void;
  assertThrows(run: () => unknown, message?: string): unknown;
  assertThrows<E extends Error>(run: () => unknown, type: ErrorClass<E>, includes?: string, message?: string): E;
  assertRejects(run: () => PromiseLike<unknown>, message?: string): Promise<unknown>;
  assertRejects<E extends Error>(
    run: () => PromiseLike<unknown>,
    type: ErrorClass<E>,
    includes?: string,
    message?: string,
  ): Promise<E>;
  fail(message?: string): never;
}

const original: Assertions = untyped;

/** The assertions whose expected value can contain messages: see `sentence` in messages.ts. */
const withMessages: Partial<Assertions> = {
  assertEquals(actual, expected, message) {
    // The cast is safe, because the resolved value has the same shape.
    original.assertEquals(actual, resolveSentences(actual, expected) as typeof expected, message);
  },
  assertObjectMatch(actual, expected, message) {
    // The cast is safe, because the resolved value has the same shape.
    original.assertObjectMatch(actual, resolveSentences(actual, expected) as typeof expected, message);
  },
  assertStringIncludes(actual, expected, message) {
    original.assertStringIncludes(actual, hasSentence(expected) ? findSentence(actual, expected) : expected, message);
  },
  assertThrows(run: () => unknown, ...rest: readonly unknown[]) {
    const [type, expected] = rest;
    if (!hasSentence(expected)) return original.assertThrows(run, ...rest as [ErrorClass<Error>, string]); // the same arguments
    const error = original.assertThrows(run, type as ErrorClass<Error>); // a sentence follows a class
    original.assertEquals(error.message, resolveSentences(error.message, expected));
    return error;
  },
  async assertRejects(run: () => PromiseLike<unknown>, ...rest: readonly unknown[]) {
    const [type, expected] = rest;
    if (!hasSentence(expected)) return await original.assertRejects(run, ...rest as [ErrorClass<Error>, string]); // the same arguments
    const error = await original.assertRejects(run, type as ErrorClass<Error>); // a sentence follows a class
    original.assertEquals(error.message, resolveSentences(error.message, expected));
    return error;
  },
};

const std: Assertions = { ...original, ...withMessages };

export const assert: Assertions["assert"] = std.assert;
export const assertFalse: Assertions["assertFalse"] = std.assertFalse;
export const assertEquals: Assertions["assertEquals"] = std.assertEquals;
export const assertNotEquals: Assertions["assertNotEquals"] = std.assertNotEquals;
export const assertStrictEquals: Assertions["assertStrictEquals"] = std.assertStrictEquals;
export const assertNotStrictEquals: Assertions["assertNotStrictEquals"] = std.assertNotStrictEquals;
export const assertExists: Assertions["assertExists"] = std.assertExists;
export const assertMatch: Assertions["assertMatch"] = std.assertMatch;
export const assertNotMatch: Assertions["assertNotMatch"] = std.assertNotMatch;
export const assertStringIncludes: Assertions["assertStringIncludes"] = std.assertStringIncludes;
export const assertArrayIncludes: Assertions["assertArrayIncludes"] = std.assertArrayIncludes;
export const assertObjectMatch: Assertions["assertObjectMatch"] = std.assertObjectMatch;
export const assertInstanceOf: Assertions["assertInstanceOf"] = std.assertInstanceOf;
export const assertGreater: Assertions["assertGreater"] = std.assertGreater;
export const assertGreaterOrEqual: Assertions["assertGreaterOrEqual"] = std.assertGreaterOrEqual;
export const assertLess: Assertions["assertLess"] = std.assertLess;
export const assertLessOrEqual: Assertions["assertLessOrEqual"] = std.assertLessOrEqual;
export const assertThrows: Assertions["assertThrows"] = std.assertThrows;
export const assertRejects: Assertions["assertRejects"] = std.assertRejects;
export const fail: Assertions["fail"] = std.fail;
