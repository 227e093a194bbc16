// A lint rule: a test waits for a state and not for a fixed time, because a fixed time is too short on a loaded machine
// and too long on any other machine. A fixed wait that is needed has a comment such as `// Fixed wait: the kernel does
// not report when its buffers are full` on its line or on the line before.

/** Programs that measure time, or run for a fixed time. */
const PROGRAMS = /\/tests\/(?:load|fuzz|conformance|workerd)\//;
/** The helper that polls for a state. */
const HELPER = "/tests/support/behaviour.ts";

function isFixed(node: Deno.lint.CallExpression): boolean {
  const { callee, arguments: [run, delay], parent } = node;
  if (callee.type !== "Identifier" || callee.name !== "setTimeout" || !run || !delay) return false;
  if (delay.type === "Literal" && delay.value === 0) return false;
  // A timer whose id is kept is a timeout that is cleared later.
  let holder = parent;
  while (holder.type === "TSAsExpression") holder = holder.parent;
  const isKept = holder.type === "VariableDeclarator" || holder.type === "AssignmentExpression";
  return !isKept && isResolver(run);
}

/** Tests whether a callback only ends a wait, such as `resolve` or `() => resolve()`. */
function isResolver(node: Deno.lint.Node): boolean {
  if (node.type === "Identifier") return /^(?:resolve|done)$/.test(node.name);
  if (node.type !== "ArrowFunctionExpression" || node.body.type !== "CallExpression") return false;
  const { callee } = node.body;
  return callee.type === "MemberExpression"
    ? callee.property.type === "Identifier" && callee.property.name === "abort"
    : isResolver(callee);
}

const plugin: Deno.lint.Plugin = {
  name: "tests",
  rules: {
    "fixed-wait": {
      create(context) {
        const { filename, sourceCode } = context;
        const path = filename.replaceAll("\\", "/");
        if (!path.includes("/tests/") || PROGRAMS.test(path) || path.endsWith(HELPER)) return {};
        const toLine = (offset: number) => sourceCode.text.slice(0, offset).split("\n").length;
        return {
          CallExpression(node) {
            if (!isFixed(node)) return;
            const line = toLine(node.range[0]);
            const hasReason = sourceCode.getAllComments().some(({ value, range }) =>
              /^\s*Fixed wait: \S/.test(value) && [line, line - 1].includes(toLine(range[1]))
            );
            if (hasReason) return;
            context.report({
              node,
              message: "Waits for a fixed time",
              hint: "Wait for a state with until(), or write the reason as a comment: // Fixed wait: …",
            });
          },
        };
      },
    },
  },
};
export default plugin;
