/**
 * A test kit for servers and handlers: a client for every era and transport, a fake context and a fake clock.
 *
 * ```ts
 * import { createServer, tool } from "@x/mcp";
 * import { connectTest } from "@x/mcp/testing";
 *
 * const hello = tool({ name: "hello", run: () => "Hello!" });
 * const server = createServer({ name: "greeter", version: "1.0.0", handlers: [hello] });
 *
 * await using client = await connectTest(server);
 * const tools = await client.listTools();
 * if (tools[0].name !== "hello") throw new Error("hello is missing");
 * ```
 *
 * @module
 */
export type { ListedTool } from "../core/protocol/listed.ts";
export type { Notification } from "../client/message.ts";
export type { ServerRequest } from "../client/answer_options.ts";
export type { Progress, RequestOptions, TestRequestOptions } from "../client/rpc.ts";
export { McpError } from "../core/protocol/errors.ts";
export type { SubscriptionFilter } from "../client/subscription.ts";
export { type Connection, connectTest, type ConnectTestOptions } from "./connect.ts";
export { type FakeClock, fakeClock } from "./fake_clock.ts";
export {
  fakeGitHub,
  type FakeGitHubOptions,
  type FakeGitHubUser,
  fakeGoogle,
  type FakeGoogleOptions,
  type FakeGoogleUser,
  type FakeProvider,
  type FakeProviderOptions,
} from "./fake_providers.ts";
export { type FakeContext, fakeContext, type FakeContextOptions } from "./fake_context.ts";
export { testStore, type TestStoreOptions } from "./test_store.ts";
export { replay, type Replayable, type Replayed } from "./replay.ts";
export { replayTranscript } from "./replay_transcript.ts";
export { testTask, type TestTaskOptions } from "./test_task.ts";
export type { Transport, TransportInfo } from "./transports.ts";
export type { TestSubscription } from "./subscription.ts";
// Types in the signatures of this entry point that the main entry point does not export.
export type { FaultEvent } from "../server/call/observer.ts";
export type { Served } from "../server/transports/channel.ts";
export type { Id, Params } from "../core/protocol/jsonrpc.ts";
