// A server with tools and resources whose results are long, empty, formatted or malicious.
import { createServer, media, prompt, resource, tool } from "@x/mcp";
import { replaceInResponses } from "./foreign.ts";

/** Stands for image data that is not Base64. */
const placeholder = btoa("not an image");

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const wave = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="document.title='broken'">
<script>document.title = "broken"; top.document.title = "broken"</script><rect width="9" height="9" fill="red"/>
<image href="http://127.0.0.1:9/leak.png"/></svg>`;

/** Runs in the rendered document, and records forbidden actions. */
export const document = `# A title with \`code\`

Some **bold**, *emphasis*, ~~gone~~ and \`let x = "<b>";\`. A [link](https://example.com/docs "title"),
a [mail](mailto:ada@example.com), <https://example.org/auto>, an escaped \\*star\\*, snake_case_name.

- one
- two
  - inner
- [x] done

3. third
4. fourth

> Quoted
> > twice

| Name | Value |
|------|------:|
| a    | **1** |

\`\`\`js
alert("fence")
\`\`\`

---

[not a link](javascript:document.title='broken') and [nor this](data:text/html,<script>1</script>)
[nor that](vbscript:x) and [file](file:///etc/passwd) and <javascript:alert(1)>
![tracker](http://127.0.0.1:9/pixel.png)
[https://bank.example](https://evil.example/login)
<img src=x onerror="document.title='broken'"> <script>document.title='broken'</script>
\u202Ebackwards\u202C zero\u200Bwidth tag\u{E0041}mark\u061C left\u200Emark
`;

const server = createServer({
  name: "results",
  version: "1.0.0",
  handlers: [
    tool({ name: "prose", run: () => document }),
    tool({
      name: "unclosed",
      input: { type: "object", properties: { mark: { type: "string" } }, required: ["mark"] },
      run: ({ mark }) => `# Marks\n\n${String(mark).repeat(20_000)}\n[x](y)`,
    }),
    tool({
      name: "long",
      run: () => ({
        rows: Array.from({ length: 3000 }, (_, at) => ({ at, name: `Row ${at}`, needle: at % 1000 === 0 })),
      }),
    }),
    tool({
      name: "lines",
      run: () => Array.from({ length: 400 }, (_, at) => `Line ${at}${at % 100 ? "" : " has the Needle.*"}`).join("\n"),
    }),
    tool({ name: "empty", run: () => ({ content: [] }) }),
    tool({ name: "blank", run: () => "" }),
    tool({
      name: "unseen",
      run: () => "a\u0007b\u001b[31mc\u202Ed\u2066e\u200Ff\u2028g\u3164h\uFEFF\uFE01i\u0000j\rk",
    }),
    tool({
      name: "media",
      run: () => ({
        content: [
          media(Uint8Array.fromBase64(pixel), "image/png"),
          { type: "image", data: btoa(svg), mimeType: "image/svg+xml" },
          { type: "image", data: btoa("<script>document.title='broken'</script>"), mimeType: "text/html" },
          { type: "image", data: pixel, mimeType: "image/x-icon" },
          { type: "image", data: placeholder, mimeType: "image/png" },
          { type: "audio", data: wave, mimeType: "audio/wav" },
          { type: "audio", data: wave, mimeType: "audio/x-unknown" },
        ],
      }),
    }),
    resource({ uri: "doc://readme", name: "readme", mimeType: "text/markdown", read: () => document }),
    resource({ uri: "doc://svg", name: "svg", mimeType: "image/svg+xml", read: () => svg }),
    prompt({
      name: "talkative",
      input: {
        type: "object",
        properties: Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`word_${at}`, { type: "string" }])),
      },
      run: () => "Hello.",
    }),
    prompt({ name: "silent", run: () => ({ messages: [] }) }),
  ],
});

replaceInResponses(server, { [placeholder]: `"><script>` });

export default server;
