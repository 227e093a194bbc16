/** Removes the user name and the password from all URLs in a text. */
export function hideCredentials(text: string): string {
  return text.replaceAll(/(?<=:\/\/)[^/?#\s"]*@/g, "");
}
