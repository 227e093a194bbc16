/**
 * Prints the result of a tool.
 */
import type { ToolResult } from "../../client/client.ts";
import type { Args } from "../args.ts";
import { type PrintableContent, saveContents, toPrintableBlock } from "./content_blocks.ts";
import { reportLine, writeJson, writeText } from "./terminal_output.ts";

/** Prints a result, also to `--output`. Returns the exit code, which is 1 if the tool failed. */
export async function printToolResult(result: ToolResult, { flags }: Args): Promise<number> {
  const contents = (result.content ?? []).map(toPrintableBlock);
  await ("json" in flags ? writeJson(result) : printContents(result, contents));
  if ("output" in flags) await saveContents(contents, flags.output);
  return result.isError === true ? 1 : 0;
}

async function printContents(result: ToolResult, contents: readonly PrintableContent[]): Promise<void> {
  const { structuredContent } = result;
  if (contents.length) await writeText(contents.map(({ text }) => text).join("\n"));
  else if (structuredContent !== undefined) await writeText(JSON.stringify(structuredContent, null, 2));
  else {reportLine(
      result.isError === true ? "The tool failed and returned no content." : "The tool returned no content.",
    );}
}
