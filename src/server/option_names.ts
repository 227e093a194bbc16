/**
 * The names of the options of `createServer`, and the rules for their values.
 */
import { AUTHENTICATION } from "./engine/option_names.ts";
import { GUARD, QUOTA } from "./handlers/option_names.ts";
import { CAPABILITIES } from "./call/capabilities.ts";
import { ICONS, WEB_PAGE } from "./engine/icons.ts";
import type { ListChangedOptions } from "./call/context.ts";
import { TEXT_COPY } from "../core/protocol/text_option.ts";
import { ENCODERS } from "./visibility/guards.ts";
import type { KnownOptions, OptionRule } from "../core/known_options.ts";
import type { ServerLogOptions } from "./call/log.ts";
import type { Schema } from "../core/schema/schema.ts";
import type { CorsOptions } from "./transports/http/cors.ts";
import type { PathServerOptions } from "./options.ts";

const CORS: KnownOptions<keyof CorsOptions> = {
  names: { origins: true, credentials: "boolean", headers: "texts" },
  hints: { allowOrigin: "origins" },
  hasOtherForms: true,
};

// A clock can have other methods too, so this rule checks only the methods that the server calls.
const CLOCK: OptionRule = {
  findProblem(value) {
    const { now, date, start } = Object(value);
    if ([now, date, start].every((each) => typeof each === "function")) return;
    return "lacks now(), date() or start(); implement all three methods";
  },
};

export const SERVER: KnownOptions<keyof PathServerOptions<Schema>> = {
  names: {
    name: "text",
    version: "text",
    title: "text",
    description: "text",
    websiteUrl: WEB_PAGE,
    icons: ICONS,
    instructions: "text",
    handlers: true,
    pathSchema: true,
    use: "functions",
    auth: AUTHENTICATION,
    admit: "function",
    capabilities: CAPABILITIES,
    path: true,
    hosts: "texts",
    proxies: "texts",
    requireSession: "boolean",
    revisions: "texts",
    origins: "texts",
    streams: "boolean",
    cors: CORS,
    secret: true,
    store: true,
    sharedDisable: "boolean",
    lenientArguments: "boolean",
    text: TEXT_COPY,
    sessionData: "function",
    limits: true,
    ttlMs: true,
    cacheScope: ["public", "private"],
    observer: true,
    routes: "list",
    mapError: "function",
    encoders: ENCODERS,
    publishSchema: "function",
    development: "boolean",
    clock: CLOCK,
  },
  hints: {
    middleware: "use",
    middlewares: "use",
    tools: "handlers",
    resources: "handlers",
    resourceTemplates: "handlers",
    prompts: "handlers",
    extensions: "handlers",
    security: "auth",
    onError: "observer",
    onToolError: "mapError",
    timeoutMs: "limits.calls.timeoutMs",
    params: "pathSchema",
    session: "sessionData",
    sessions: "requireSession",
    enableJsonResponse: "streams",
    versions: "revisions",
    protocolVersions: "revisions",
  },
  elsewhere: { guards: GUARD, guard: GUARD, quota: QUOTA },
};

export const LIST_CHANGED: KnownOptions<keyof ListChangedOptions> = { names: { to: "function" } };

export const LOG: KnownOptions<keyof ServerLogOptions> = { names: { logger: "text", to: "function" } };
