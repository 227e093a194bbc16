// The programs and folders that a run needs. All paths are absolute.

export interface Tools {
  /** The Node executable for clients and for the npm package. */
  readonly node: string;
  readonly deno: string;
  /** `undefined` if Bun is not installed. */
  readonly bun?: string;
  /** The folder of the project in which the npm package of the library is installed. */
  readonly npmProject: string;
  /** The folder of the project with the server of the official SDK. */
  readonly officialProject: string;
  /** The folder for the homes of clients, and for logs. */
  readonly work: string;
  /** The folders of the installed clients, by name. */
  readonly packages: Readonly<Record<string, string>>;
  /** The reasons why clients could not be installed, by name. */
  readonly missing: Readonly<Record<string, string>>;
}
