/** Messages of V8 and JavaScriptCore. */
const MESSAGES =
  /read ?only property|not extensible|Cannot (delete|redefine) property|Unable to delete property|unconfigurable property|not writable/;

/** Tests whether an engine has thrown the error because code has changed a frozen object or array. */
export function isFrozenError(error: unknown): error is TypeError {
  return error instanceof TypeError && MESSAGES.test(error.message);
}
