/**
 * The type of a client whose methods have the types of the server's handlers.
 */
import type { Typed } from "../core/typed.ts";
import type { Result } from "../core/protocol/jsonrpc.ts";
import type { TemplateVariables } from "../core/protocol/uri_template.ts";
import type { PromptMessage, ToolResult } from "../core/protocol/types.ts";
import type { Client } from "./calls.ts";
import type { RequestOptions } from "./rpc.ts";

/** The types of the handlers of server `S` with the kind `Kind`: `tool`, `prompt` or `template`. */
export type HandlersOf<S, Kind> = S extends Typed<infer H> ? H extends readonly unknown[] ? TypesOf<H[number], Kind>
  : never
  : never;

/**
 * The types of a handler with the kind `Kind`. For a group, the types of the group's handlers, with the group's prefix
 * before each name. Templates keep their names.
 */
export type TypesOf<T, Kind, Prefix extends string = ""> = T extends Typed<infer X>
  ? X extends { readonly kind: "group"; readonly name: infer G extends string; readonly handlers: readonly (infer M)[] }
    ? TypesOf<M, Kind, `${Prefix}${G}_`>
  : X extends { readonly kind: Kind; readonly name: infer N extends string }
    ? Prefix extends "" ? X : Kind extends "template" ? X
    : { readonly [K in keyof X]: K extends "name" ? `${Prefix}${N}` : X[K] }
  : never
  : never;

/** The name in a handler's type. */
export type NameOf<T> = T extends { readonly name: infer N } ? N : never;

/**
 * The type of the arguments that a client sends to the handler with the name `N`: of a handler with this name, or else of
 * a handler with any name, such as a provider. `All` is the same type as `T`.
 */
export type InputOf<T, N, All = T> = T extends { readonly name: N; readonly input: infer I } ? I
  : T extends { readonly name: infer M; readonly input: infer I }
    ? string extends M
      ? N extends (All extends { readonly name: infer A } ? string extends A ? never : A : never) ? never : I
    : never
  : never;

/** The type of the structured content from the handler with the name `N`, found like {@linkcode InputOf}. */
export type OutputNamed<T, N, All = T> = T extends { readonly name: N; readonly output: infer O } ? O
  : T extends { readonly name: infer M; readonly output: infer O }
    ? string extends M
      ? N extends (All extends { readonly name: infer A } ? string extends A ? never : A : never) ? never : O
    : never
  : never;

/**
 * The parameters `args` and `options` of a method. `args` can be omitted if all arguments of the handler are optional.
 */
export type CallArguments<Input> = Record<never, never> extends Input ? [args?: Input, options?: RequestOptions]
  : [args: Input, options?: RequestOptions];

/** A client that is connected to a server of the type `S`. */
export interface TypedClient<S> extends Omit<Client, "callTool" | "getPrompt" | "readTemplate"> {
  /** Calls a tool, like {@linkcode Client.callTool}. `structuredContent` is `undefined` if the tool failed. */
  callTool<N extends NameOf<HandlersOf<S, "tool">>>(
    name: N,
    ...rest: CallArguments<InputOf<HandlersOf<S, "tool">, N>>
  ): Promise<
    ToolResult & Result & {
      /** The structured content, with the type of the tool's output. */
      readonly structuredContent?: OutputNamed<HandlersOf<S, "tool">, N>;
    }
  >;
  /** Gets the messages of a prompt, like {@linkcode Client.getPrompt}. */
  getPrompt<N extends NameOf<HandlersOf<S, "prompt">>>(
    name: N,
    ...rest: CallArguments<{ readonly [K in keyof InputOf<HandlersOf<S, "prompt">, N>]: string }>
  ): Promise<{ readonly description?: string; readonly messages: readonly PromptMessage[] } & Result>;
  /** Reads a resource of a template, like {@linkcode Client.readTemplate}. */
  readTemplate<T extends NameOf<HandlersOf<S, "template">>>(
    template: T,
    variables: TemplateVariables<T & string>,
    options?: RequestOptions,
  ): ReturnType<Client["readResource"]>;
}
