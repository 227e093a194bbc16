// Draws a recording of a terminal as an animated SVG. Viewers that do not animate show the last frame.

/** What the terminal shows from a moment on. */
export interface Frame {
  /** Milliseconds from the begin of the recording. */
  readonly at: number;
  readonly lines: readonly string[];
}

const CELL = { width: 8.43, height: 20 };
const PADDING = 16;
/** Milliseconds for which the last frame stays, before the animation begins again. */
const REST = 5000;

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** Shortens the pauses of a recording to at most `most` milliseconds. */
export function shortenPauses(frames: readonly Frame[], most: number): readonly Frame[] {
  let cut = 0;
  return frames.map(({ at, lines }, index) => {
    cut += Math.max(0, at - (frames[index - 1]?.at ?? at) - most);
    return { at: at - cut, lines };
  });
}

/** Returns the SVG. `title` describes the recording for readers who cannot see it. */
export function toAnimation(frames: readonly Frame[], title: string): string {
  const rows = Math.max(...frames.map(({ lines }) => lines.length));
  const columns = Math.max(...frames.flatMap(({ lines }) => lines.map((line) => line.length)));
  const [width, height] = [Math.ceil(columns * CELL.width) + 2 * PADDING, rows * CELL.height + 2 * PADDING];
  const total = (frames.at(-1)?.at ?? 0) + REST;
  const toPercent = (ms: number) => `${(ms / total * 100).toFixed(2)}%`;
  const rules: string[] = [];
  const groups = frames.map(({ at, lines }, index) => {
    const end = frames[index + 1]?.at ?? total;
    const shown = "{ visibility: visible }";
    const hidden = "{ visibility: hidden }";
    rules.push(
      `.f${index} { animation: f${index} ${total}ms step-end infinite }`,
      `@keyframes f${index} { ${at ? `0% ${hidden} ` : ""}${toPercent(at)} ${shown} ${toPercent(end)} ${
        end === total ? shown : hidden
      } }`,
    );
    const texts = lines.map((line, row) => {
      const kind = line.startsWith("$ ") ? ' class="typed"' : line.startsWith("#") ? ' class="note"' : "";
      const y = PADDING + (row + 0.75) * CELL.height;
      return line && `<text${kind} x="${PADDING}" y="${y}" xml:space="preserve">${escape(line)}</text>`;
    });
    return `<g class="f${index}"${index < frames.length - 1 ? ' visibility="hidden"' : ""}>\n${
      texts.filter(Boolean).join("\n")
    }\n</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escape(title)}</title>
<style>
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #e6edf3 }
.typed { fill: #7ee787 } .note { fill: #a5b1bd }
${rules.join("\n")}
@media (prefers-reduced-motion: reduce) { g { animation: none !important } }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#161b22" stroke="#30363d" />
${groups.join("\n")}
</svg>
`;
}
