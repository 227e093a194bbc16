/** Removes the user name and the password from all URLs in a text. */
export function hideCredentials(text: string): string {
  return text.replaceAll(/(?<=:\/\/)[^/?#\s"]*@/g, "");
}

/** Decodes a percent-encoded text. Returns `undefined` if the text is malformed, or is not UTF-8. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    // Returns `undefined`.
  }
}
