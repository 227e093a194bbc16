/**
 * The style sheet of the page.
 *
 * @module
 */

/** The style sheet. Text has a contrast of at least 4.5 to its background in both themes. */
export const style: string = `
:root {
  color-scheme: light dark;
  --panel: #ffffff; --sunken: #f6f6f3; --hover: #eeeeea;
  --line: #dcdcd5; --edge: #85857b; --text: #1d1d1a; --muted: #5e5e56;
  --accent: #1a5fb4; --on-accent: #ffffff; --accent-soft: #e4eefa;
  --good: #17693a; --good-soft: #e2f2e8; --bad: #b3261e; --bad-soft: #fbe8e6; --warn: #7d4e00; --warn-soft: #f8eed9;
  --key: #7a3596; --string: #17693a; --number: #1a5fb4;
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --panel: #1b1b1a; --sunken: #141413; --hover: #272725;
    --line: #33332f; --edge: #77776d; --text: #e8e8e2; --muted: #a4a49a;
    --accent: #8cb8f5; --on-accent: #0d1f38; --accent-soft: #1f2f46;
    --good: #82cf9c; --good-soft: #1a2e21; --bad: #ff968c; --bad-soft: #3b1f1c; --warn: #e6bb6c; --warn-soft: #33290f;
    --key: #d2a1e6; --string: #82cf9c; --number: #8cb8f5;
  }
}
*, ::before, ::after { box-sizing: border-box; }
[hidden] { display: none !important; }
html { height: 100%; }
body {
  margin: 0; height: 100%; display: grid; grid-template: auto auto minmax(0, 1fr) / minmax(0, 1fr);
  background: var(--panel); color: var(--text); font: 13.5px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere;
}
h1, h2, h3, p, ul, ol, dl, dd, pre, fieldset, legend { margin: 0; padding: 0; }
ul, ol { list-style: none; }
h1 { font-size: 15px; font-weight: 650; }
h2 { font-size: 17px; font-weight: 650; line-height: 1.3; }
h3, legend { font-size: 12px; font-weight: 600; color: var(--muted); }
h3 { margin-top: 18px; }
code, pre, .code, article > h2, .name, .method { font-family: var(--mono); }
code, pre, .code { font-size: 12.5px; }
pre {
  padding: 10px 12px; border: 1px solid var(--line); border-radius: 6px; background: var(--sunken);
  white-space: pre-wrap; max-height: 60vh; overflow: auto; tab-size: 2; line-height: 1.45;
}
a { color: var(--accent); }
.muted { color: var(--muted); }
.grow { flex: 1 1 0; min-width: 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
pre:focus-visible, .frames:focus-visible { outline-offset: -2px; }

button, input, select, textarea { font: inherit; color: inherit; }
button {
  flex: none; padding: 4px 12px; white-space: nowrap; border: 1px solid var(--line); border-radius: 6px; background: var(--panel); cursor: pointer;
  line-height: 1.5; font-weight: 500;
}
button:hover { background: var(--hover); }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
button.primary:hover { filter: brightness(1.08); }
button.primary[aria-disabled] { opacity: .55; cursor: default; }
button.quiet { border-color: transparent; background: none; color: var(--muted); }
button.quiet:hover { background: var(--hover); color: var(--text); }
button.small { padding: 1px 8px; font-size: 12px; }
button[aria-pressed=true] { background: var(--accent-soft); border-color: var(--accent); color: var(--accent); }
input:not([type=checkbox], [type=radio]), select, textarea {
  width: 100%; padding: 4px 8px; border: 1px solid var(--edge); border-radius: 6px; background: var(--panel);
  min-height: 31px;
}
textarea { resize: vertical; field-sizing: content; max-height: 50vh; display: block; }
textarea.code { min-height: 62px; }
input[type=checkbox], input[type=radio] { width: 15px; height: 15px; margin: 0; accent-color: var(--accent); flex: none; }
::placeholder { color: var(--muted); opacity: 1; }
[aria-invalid] { border-color: var(--bad) !important; }
option { background: var(--panel); color: var(--text); }

header { display: flex; flex-wrap: wrap; align-items: center; gap: 0 20px; padding: 0 16px; background: var(--sunken); border-bottom: 1px solid var(--line); }
.who { display: flex; align-items: baseline; flex-wrap: wrap; gap: 0 10px; min-width: 0; max-width: 40%; padding: 4px 0; }
.switches { margin-left: auto; display: flex; gap: 2px; padding: 3px 0; }
.switches > [aria-expanded=true] { color: var(--text); background: var(--hover); }
.count { font-size: 11.5px; color: var(--muted); font-variant-numeric: tabular-nums; font-weight: 400; }
.tabs { display: flex; gap: 2px; min-width: 0; overflow-x: auto; scrollbar-width: none; align-self: flex-end; }
.tabs button { border: 0; border-radius: 0; background: none; padding: 9px 8px 8px; color: var(--muted); border-bottom: 2px solid transparent; }
.tabs button:hover { color: var(--text); }
.tabs button:focus-visible { outline-offset: -3px; border-radius: 6px; }
.tabs button[aria-selected=true] { color: var(--text); border-bottom-color: var(--accent); }
.failure { padding: 16px; }
main { min-height: 0; min-width: 0; display: grid; }
main > * { min-height: 0; min-width: 0; }

.state { display: inline-flex; align-items: center; gap: 6px; font-size: 12.5px; font-weight: 600; color: var(--muted); white-space: nowrap; }
.state::before { content: ""; width: 7px; height: 7px; border-radius: 50%; background: currentColor; }
header .state { font-weight: 400; }
.state.good { color: var(--good); }
.state.bad { color: var(--bad); }
.state.running { color: var(--accent); }
.state.running::before { animation: pulse 1.2s ease-in-out infinite; }
@keyframes pulse { 50% { opacity: .25; } }
@media (prefers-reduced-motion: reduce) { .state.running::before { animation: none; } }

.browse { display: grid; grid-template: minmax(0, 1fr) / 250px minmax(0, 1fr); height: 100%; }
.side { display: flex; flex-direction: column; min-height: 0; border-right: 1px solid var(--line); background: var(--sunken); }
.filters { display: flex; gap: 6px; padding: 8px 8px 0; align-items: center; }
.filters + .filters { padding-top: 6px; }
.list { overflow-y: auto; padding: 8px; min-height: 0; }
.list:empty { padding: 0; }
.group { padding: 8px 8px 2px; font-size: 11.5px; font-weight: 600; color: var(--muted); }
.group:first-child { padding-top: 0; }
.item { display: block; width: 100%; padding: 4px 8px; border: 0; background: none; text-align: left; font-weight: 400; }
.item .name, .item .note { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.item .name { font-size: 12.5px; font-weight: 600; }
.item .note { font-size: 12px; color: var(--muted); line-height: 1.35; }
.item[aria-current] { background: var(--accent-soft); }
.pad { padding: 10px 16px; }
.main { min-height: 0; min-width: 0; display: flex; flex-direction: column; }
.detail { overflow-y: auto; padding: 18px 22px 40px; flex: 1 1 0; min-height: 0; }
.detail > article, .page > * { max-width: 760px; }
.blank { padding: 10vh 0; text-align: center; }
.back { display: none; align-self: flex-start; margin: 6px 8px 0; }
.page { overflow-y: auto; padding: 18px 22px 40px; height: 100%; }
.page > h2:not(:first-child) { margin-top: 28px; }

article > h2 { font-size: 16px; }
article > .title { font-weight: 600; color: var(--muted); }
.description { white-space: pre-line; max-width: 68ch; margin-top: 4px; }
.address { margin: 6px 0; color: var(--muted); }
.address code { color: var(--text); }
.marks { display: inline-flex; flex-wrap: wrap; gap: 4px; margin-top: 6px; }
.mark { padding: 0 7px; border-radius: 9px; background: var(--hover); color: var(--muted); font-size: 12px; }
article > form { margin-top: 16px; }

.fields { display: grid; gap: 14px; }
.field { border: 0; min-width: 0; margin: 0; }
.labels { display: flex; flex-wrap: wrap; gap: 0 8px; align-items: baseline; padding: 0; margin-bottom: 4px; }
.labels label, .label { font-weight: 600; }
.field .name { font-size: 12.5px; }
input[type=number], input[type=date], input[type=datetime-local], .field > select { max-width: 280px; }
.turn ~ .field textarea { min-height: 84px; }
.field .title { font-weight: 500; }
.field .type, .field .required { color: var(--muted); font-size: 12px; }
.field .required { color: var(--warn); }
.hint { color: var(--muted); font-size: 12.5px; margin-top: 3px; }
.problem { color: var(--bad); font-size: 12.5px; margin-top: 3px; }
.box { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 0 8px; align-items: center; }
.box > .labels { grid-area: 1 / 2; margin: 0; }
.box > input { grid-area: 1 / 1; }
.box > p { grid-column: 2; }
.boxes { display: flex; flex-wrap: wrap; gap: 4px 16px; }
.boxes label { display: inline-flex; gap: 6px; align-items: center; min-height: 24px; }
.rows { display: grid; gap: 6px; }
.rows:not(:empty) { margin-bottom: 6px; }
.rows li { display: flex; gap: 6px; align-items: center; }
.rows li > :first-child { flex: 1 1 0; min-width: 0; }
.rows li > input[type=checkbox]:first-child { flex: none; }
.rows > .part { align-items: flex-start; padding: 8px 4px 10px 12px; border: 1px solid var(--line); border-radius: 6px; }
.rows > .part > :first-child > .nested { border: 0; padding: 0; margin: 0; }
.nested { margin-top: 6px; padding: 2px 0 2px 12px; border-left: 2px solid var(--line); }
.union > .nested > div > .nested { margin: 0; padding: 0; border: 0; }
.nested:empty { display: none; }
.nested > .fields, .nested > div > .fields { gap: 12px; }
.fields + .more, .more + .field, .fields + .field { margin-top: 14px; }
.split { display: flex; justify-content: space-between; align-items: baseline; margin-bottom: 6px; }
.split h3 { margin: 0; }
.modes { display: flex; }
.modes button { padding: 0 9px; font-size: 12px; border-radius: 0; color: var(--muted); }
.modes button:first-child { border-radius: 6px 0 0 6px; }
.modes button:last-child { border-radius: 0 6px 6px 0; margin-left: -1px; }
.modes button[aria-pressed=true] { z-index: 1; color: var(--accent); }
.actions { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 16px; }
.inline { display: flex; gap: 6px; max-width: 480px; margin-top: 6px; }
.combo { position: relative; }
.options {
  position: absolute; z-index: 5; left: 0; right: 0; top: calc(100% + 3px); max-height: 220px; overflow-y: auto;
  background: var(--panel); border: 1px solid var(--edge); border-radius: 6px; padding: 4px;
  box-shadow: 0 6px 20px rgb(0 0 0 / .16);
}
.options li { padding: 3px 8px; border-radius: 4px; }
.options [role=option] { cursor: pointer; }
.options [role=option]:hover { background: var(--hover); }
.options [aria-selected=true] { background: var(--accent); color: var(--on-accent); }

.output { display: grid; gap: 10px; margin-top: 18px; }
.output:empty { display: none; }
.output > * { min-width: 0; }
.output > .head { border-top: 1px solid var(--line); padding-top: 12px; }
.head { display: flex; flex-wrap: wrap; gap: 2px 10px; align-items: baseline; }
.block { display: grid; gap: 4px; min-width: 0; }
.block > h3 { margin: 4px 0 0; }
.block > * { min-width: 0; }
.head:has(.bad) ~ .block > pre { border-color: var(--bad); }
.link { display: flex; gap: 8px; align-items: baseline; padding: 7px 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--sunken); }
.resource { display: grid; gap: 4px; min-width: 0; }
.turn { display: grid; gap: 4px; min-width: 0; margin-top: 4px; }
.turn > strong { font-size: 12px; color: var(--muted); }
.viewer { display: grid; gap: 4px; min-width: 0; }
.viewer > .body { min-width: 0; }
.tools { display: flex; flex-wrap: wrap; justify-content: flex-end; align-items: center; gap: 4px 8px; font-size: 12px; min-height: 24px; }
.tools > .grow { flex: 1 1 auto; }
.viewer.short { position: relative; }
.viewer.short > .tools { position: absolute; top: 4px; right: 4px; z-index: 1; min-height: 0; }
.viewer.short > .body > pre { padding-right: 68px; min-height: 34px; padding-top: 7px; padding-bottom: 7px; }
.viewer.short > .tools > button { background: var(--sunken); }
.finder { display: inline-flex; align-items: center; gap: 2px; }
.finder .find { width: 130px; min-height: 24px; padding: 0 8px; font-size: 12px; }
.finder .muted { min-width: 0; padding-left: 4px; font-variant-numeric: tabular-nums; }
mark { background: var(--warn-soft); color: var(--warn); border-radius: 2px; }
mark[aria-current] { background: var(--warn); color: var(--panel); }
.nothing { font-style: italic; }
.prose { display: grid; gap: 8px; padding: 10px 14px; border: 1px solid var(--line); border-radius: 6px; max-height: 70vh; overflow: auto; }
.prose > * { min-width: 0; }
.prose .heading { margin: 4px 0 0; font-size: 14px; font-weight: 650; color: var(--text); font-family: inherit; }
.prose h3.heading { font-size: 17px; } .prose h4.heading { font-size: 15px; }
.prose .items { list-style: disc; padding-left: 22px; display: grid; gap: 3px; }
.prose ol.items { list-style: decimal; }
.prose p { white-space: pre-line; }
.prose :not(pre) > code { padding: 0 4px; border-radius: 4px; background: var(--sunken); border: 1px solid var(--line); }
.prose .image { color: var(--muted); font-style: italic; }
blockquote { margin: 0; padding-left: 12px; border-left: 3px solid var(--line); color: var(--muted); display: grid; gap: 6px; }
hr { width: 100%; border: 0; border-top: 1px solid var(--line); margin: 4px 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 3px 10px; border: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--sunken); font-weight: 600; }
.media { display: grid; gap: 4px; padding: 7px 10px; border: 1px solid var(--line); border-radius: 6px; background: var(--sunken); }
img { max-width: 100%; max-height: 320px; justify-self: start; background: repeating-conic-gradient(#8883 0 25%, transparent 0 50%) 0 0 / 16px 16px; }
img.icon { width: 24px; height: 24px; border: 0; background: none; }
audio { width: 100%; max-width: 420px; }
.error { display: grid; grid-template-columns: auto 1fr; gap: 2px 10px; padding: 10px 12px; border: 1px solid var(--bad); border-radius: 6px; background: var(--bad-soft); }
.error > strong { color: var(--bad); }
.error > p, .error > pre, .error > .viewer { grid-column: 1 / -1; min-width: 0; }
.failure .error { max-width: 760px; margin-bottom: 10px; }
.news { display: grid; gap: 8px; }
.news:empty { display: none; }
.progress { display: flex; flex-wrap: wrap; gap: 2px 10px; align-items: center; color: var(--muted); font-variant-numeric: tabular-nums; }
progress { appearance: none; width: 220px; max-width: 100%; height: 8px; border: 0; border-radius: 4px; background: var(--hover); overflow: hidden; accent-color: var(--accent); }
progress::-webkit-progress-bar { background: var(--hover); }
progress::-webkit-progress-value { background: var(--accent); border-radius: 4px; }
progress::-moz-progress-bar { background: var(--accent); }
progress:indeterminate { background: linear-gradient(90deg, var(--hover), var(--accent), var(--hover)); }
.messages { display: grid; gap: 3px; max-height: 220px; overflow-y: auto; }
.messages li { display: flex; flex-wrap: wrap; gap: 0 8px; align-items: baseline; }
.level { font-size: 11.5px; padding: 0 6px; border-radius: 4px; background: var(--hover); color: var(--muted); }
.level.bad { background: var(--bad-soft); color: var(--bad); }
.folds { margin-top: 22px; border-top: 1px solid var(--line); }
.fold > summary { padding: 5px 0; color: var(--muted); cursor: pointer; font-size: 12.5px; }
.fold > summary:hover { color: var(--text); }
.fold[open] > pre { margin-bottom: 8px; }
.key { color: var(--key); } .string { color: var(--string); } .number { color: var(--number); } .word { color: var(--warn); }

.line { display: flex; flex-wrap: wrap; gap: 4px 10px; align-items: center; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 18px; margin-top: 10px; }
dt { color: var(--muted); }
.page .field { margin-top: 12px; }
.page legend { margin-bottom: 4px; }
.page .labels label { font-size: 12px; color: var(--muted); }
.page > pre, .page > p { margin-top: 4px; }
.page h3 + * { margin-top: 4px; }
.changes, .calls { display: grid; gap: 3px; }
.changes li, .calls li { display: flex; flex-wrap: wrap; gap: 0 10px; font-variant-numeric: tabular-nums; align-items: baseline; }
.calls li { padding: 4px 0; border-bottom: 1px solid var(--line); }

.log { display: flex; flex-direction: column; min-height: 0; background: var(--sunken); border-left: 1px solid var(--line); }
.frames { overflow-y: auto; flex: 1 1 0; min-height: 0; padding: 6px 4px; font-size: 12px; margin-top: 6px; border-top: 1px solid var(--line); }
.frames + .pad { position: absolute; margin-top: 44px; }
.frames summary { display: flex; gap: 7px; padding: 1px 6px; border-radius: 4px; cursor: pointer; align-items: baseline; list-style: none; }
.frames summary::-webkit-details-marker { display: none; }
.frames summary:hover { background: var(--hover); }
.frames .way { color: var(--muted); flex: none; }
.frames .request .way { color: var(--accent); }
.frames .id { color: var(--muted); flex: none; min-width: 2.6em; font-variant-numeric: tabular-nums; }
.frames .method { flex: none; max-width: 68%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; font-size: 11.5px; }
.frames .note { color: var(--muted); flex: 1 1 0; min-width: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.frames .when { color: var(--muted); flex: none; font-variant-numeric: tabular-nums; }
.frames .result .method { color: var(--good); }
.frames .question .method { color: var(--warn); }
.frames .error, .frames .failure { all: unset; display: block; }
.frames .error .method, .frames .failure .method, .frames .tool-error .method { color: var(--bad); }
.frames .closed .method { color: var(--muted); }
.frames .http { color: var(--bad); flex: none; }
.frames details[open] { background: var(--panel); border-radius: 6px; padding-bottom: 6px; margin-bottom: 4px; }
.frames details > .head { padding: 2px 8px 4px; font-size: 11.5px; }
.frames details > .headers { margin-bottom: 4px; color: var(--muted); }
.frames details > pre { margin: 0 6px; font-size: 11.5px; max-height: 40vh; padding: 6px 8px; }

dialog {
  width: min(520px, calc(100vw - 24px)); max-height: calc(100dvh - 24px); padding: 18px 20px; overflow-y: auto;
  border: 1px solid var(--line); border-radius: 10px; background: var(--panel); color: var(--text);
  box-shadow: 0 18px 60px rgb(0 0 0 / .3);
}
dialog::backdrop { background: rgb(0 0 0 / .4); }
dialog .message { white-space: pre-line; margin: 10px 0 14px; }
.places { display: grid; gap: 8px; margin: 14px 0; }
.place { display: flex; gap: 8px; align-items: baseline; }
.place > input { position: relative; top: 2px; }
.secret { display: flex; gap: 4px; align-items: center; flex: 1 1 0; min-width: 0; }
.rows > .header > input { flex: 0 1 38%; }
.rows > .header > .secret { flex: 1 1 0; }
dialog .turn { margin: 10px 0; }
dialog .field + p { margin-top: 10px; }

@media (min-width: 1100px) {
  body.logged { grid-template-columns: minmax(0, 1fr) 400px; }
  body > header, body > .failure { grid-column: 1 / -1; }
  body > main { grid-row: 3; grid-column: 1; }
  body > .log { grid-row: 3; grid-column: 2; }
}
@media (max-width: 1099px) {
  body { grid-template-rows: auto auto minmax(0, 1fr) auto; }
  body > main { grid-row: 3; }
  body > .log { grid-row: 4; height: 38dvh; border-left: 0; border-top: 1px solid var(--edge); }
}
@media (max-width: 700px) {
  header { padding: 4px 8px 0; gap: 0 8px; }
  .who { flex: 1 1 0; max-width: none; padding: 4px; }
  .tabs { order: 3; flex: 1 0 100%; }
  .tabs button { padding: 8px 7px; }
  .browse { grid-template-columns: minmax(0, 1fr); }
  .browse:not(.chosen) > .main, .browse.chosen > .side { display: none; }
  .side { border-right: 0; }
  .item { padding: 7px 8px; }
  .back { display: block; }
  .detail { padding: 6px 14px 32px; }
  .page { padding: 14px 14px 32px; }
  button:not(.small, .item, .quiet, .tabs *, .modes *) { min-height: 36px; }
  input:not([type=checkbox], [type=radio]), select, textarea { min-height: 36px; font-size: 16px; }
  input.code, textarea.code { font-size: 14px; }
  input[type=number], input[type=date], input[type=datetime-local], .field > select { max-width: none; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: 8px; }
}
@media (forced-colors: active) {
  .item[aria-current], .tabs button[aria-selected=true] { border-bottom: 2px solid Highlight; }
}
`;
