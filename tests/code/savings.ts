// Measures what code mode saves: the tokens and calls of ten tasks over two catalogues, with direct calls, with a search,
// and with programs. No model runs: each task has a written program, and the other two ways make the calls that the
// program makes. The data is invented. Prints the table of docs/guides/code-mode.md.
//
// deno task code:savings
import { createServer, type Handler, tool } from "../../mod.ts";
import { codeMode } from "../../src/ready/code/code.ts";
import { toolSearch } from "../../src/ready/search/search.ts";
import { type Connection, connectTest } from "../../src/testing/testing.ts";
import { type CatalogueName, readCatalogue } from "../search/catalogues.ts";

interface Task {
  readonly catalogue: CatalogueName;
  readonly goal: string;
  /** What a model searches for first. */
  readonly queries: readonly string[];
  readonly code: string;
}

const REPOSITORIES = ["shop", "web", "docs"];

const TASKS: readonly Task[] = [
  {
    catalogue: "github",
    goal: "Which open issues of three repositories have the label bug?",
    queries: ["list issues of a repository"],
    code: `const found = [];
for (const repo of ${JSON.stringify(REPOSITORIES)}) {
  const issues = await tools["issues_list-for-repo"]({ owner: "acme", repo, state: "open" });
  for (const { number, title, labels } of issues.items) if (labels.some(({ name }) => name === "bug")) found.push([repo, number, title]);
}
return found;`,
  },
  {
    catalogue: "github",
    goal: "Add the label stale to the five oldest issues",
    queries: ["list issues of a repository", "add labels to an issue"],
    code:
      `const { items } = await tools["issues_list-for-repo"]({ owner: "acme", repo: "shop", sort: "created", direction: "asc" });
const oldest = items.slice(0, 5);
for (const { number } of oldest) await tools["issues_add-labels"]({ owner: "acme", repo: "shop", issue_number: number, labels: ["stale"] });
return oldest.map(({ number }) => number);`,
  },
  {
    catalogue: "github",
    goal: "What is the newest release of each repository?",
    queries: ["list repositories of an organization", "latest release of a repository"],
    code: `const { items } = await tools["repos_list-for-org"]({ org: "acme" });
return await Promise.all(items.slice(0, 8).map(async ({ name }) => [name, (await tools["repos_get-latest-release"]({ owner: "acme", repo: name })).tag_name]));`,
  },
  {
    catalogue: "github",
    goal: "How many workflow runs of this week failed?",
    queries: ["list workflow runs"],
    code:
      `const { items } = await tools["actions_list-workflow-runs-for-repo"]({ owner: "acme", repo: "shop", per_page: 100 });
return items.filter(({ conclusion }) => conclusion === "failure").length;`,
  },
  {
    catalogue: "github",
    goal: "What is the title of issue 7?",
    queries: ["get an issue"],
    code: `return (await tools["issues_get"]({ owner: "acme", repo: "shop", issue_number: 7 })).title;`,
  },
  {
    catalogue: "kubernetes",
    goal: "Which pods of three namespaces have restarted?",
    queries: ["list pods of a namespace"],
    code: `const found = [];
for (const namespace of ["shop", "web", "jobs"]) {
  const { items } = await tools.listCoreV1NamespacedPod({ namespace });
  for (const { name, restarts } of items) if (restarts > 2) found.push([namespace, name, restarts]);
}
return found;`,
  },
  {
    catalogue: "kubernetes",
    goal: "Show the last errors of the pods that have restarted",
    queries: ["list pods of a namespace", "read the log of a pod"],
    code: `const { items } = await tools.listCoreV1NamespacedPod({ namespace: "shop" });
const bad = items.filter(({ restarts }) => restarts > 2);
return await Promise.all(bad.map(async ({ name }) => {
  const log = await tools.readCoreV1NamespacedPodLog({ name, namespace: "shop", tailLines: 50 });
  return [name, log.split("\\n").filter((line) => line.includes("error")).slice(-2)];
}));`,
  },
  {
    catalogue: "kubernetes",
    goal: "On how many nodes do the pods run?",
    queries: ["list pods of all namespaces"],
    code: `const { items } = await tools.listCoreV1PodForAllNamespaces({ limit: 100 });
return new Set(items.map(({ node }) => node)).size;`,
  },
  {
    catalogue: "kubernetes",
    goal: "Delete the pods that have failed",
    queries: ["list pods of a namespace", "delete a pod"],
    code: `const { items } = await tools.listCoreV1NamespacedPod({ namespace: "jobs" });
const failed = items.filter(({ phase }) => phase === "Failed");
for (const { name } of failed) await tools.deleteCoreV1NamespacedPod({ name, namespace: "jobs" });
return failed.length;`,
  },
  {
    catalogue: "kubernetes",
    goal: "Which image does one deployment use?",
    queries: ["read a deployment"],
    code: `return (await tools.readAppsV1NamespacedDeployment({ name: "web", namespace: "shop" })).image;`,
  },
];

/** Returns an invented result, with as many entries as an API returns by default. */
function toResult(name: string, input: Readonly<Record<string, unknown>>): object | string {
  const many = (count: number, make: (at: number) => object) => ({
    items: Array.from({ length: count }, (_, at) => make(at)),
  });
  const text = (length: number) => "Lorem ipsum dolor sit amet ".repeat(Math.ceil(length / 27)).slice(0, length);
  const user = { login: "ada", id: 1, type: "User", url: "https://api.example.com/users/ada" };
  const issue = (number: number) => ({
    number,
    title: `Issue ${number}`,
    state: "open",
    user,
    labels: number % 7 === 0 ? [{ name: "bug", color: "d73a4a" }] : [{ name: "idea", color: "a2eeef" }],
    url: `https://api.example.com/repos/acme/${input.repo}/issues/${number}`,
    comments: number % 4,
    created_at: "2026-01-02T03:04:05Z",
    body: text(250),
  });
  const pod = (at: number) => ({
    name: `${input.namespace ?? "all"}-${at}`,
    namespace: input.namespace,
    node: `node-${at % 9}`,
    phase: at % 11 === 0 ? "Failed" : "Running",
    restarts: at % 8,
    image: "registry.example.com/acme/shop:1.4.2",
    labels: { app: "shop", tier: "web", version: "1.4.2" },
    conditions: ["Initialized", "Ready", "PodScheduled"],
    note: text(150),
  });
  if (/list-for-repo/.test(name)) return many(30, issue);
  if (/list-for-org/.test(name)) return many(30, (at) => ({ name: `repo-${at}`, owner: user, description: text(120) }));
  if (/list-workflow-runs/.test(name)) {
    const run = (at: number) => ({ id: at, conclusion: at % 5 ? "success" : "failure", actor: user, title: text(150) });
    return many(100, run);
  }
  if (name === "issues_get") return issue(7);
  if (/latest-release/.test(name)) return { tag_name: "v1.2.3", author: user, body: text(600) };
  if (/PodForAll/.test(name)) return many(100, pod);
  if (/NamespacedPod$/.test(name) && name.startsWith("list")) return many(40, pod);
  if (/PodLog/.test(name)) {
    return Array.from({ length: 50 }, (_, at) => `12:00:${at} ${at % 9 ? "ok" : "error"} ${text(60)}`).join("\n");
  }
  if (/Deployment/.test(name)) {
    return { name: input.name, image: "registry.example.com/acme/web:2.0.0", note: text(400) };
  }
  return { ok: true };
}

/** Number of characters per token, as `mcp check` counts them. */
const toTokens = (value: unknown) => Math.ceil((typeof value === "string" ? value : JSON.stringify(value)).length / 4);

interface Cost {
  readonly calls: number;
  readonly tokens: number;
}

async function open(handlers: readonly Handler[]): Promise<Connection & AsyncDisposable> {
  return await connectTest(createServer({ name: "savings", version: "1.0.0", handlers: [...handlers] }), {
    transport: "memory",
  });
}

async function measure(name: CatalogueName) {
  const made: { readonly name: string; readonly input: Readonly<Record<string, unknown>> }[] = [];
  const tools = (await readCatalogue(name)).map(({ name, title, description, inputSchema }) =>
    tool({
      name,
      title,
      description,
      input: { ...inputSchema },
      run: (input) => {
        made.push({ name, input });
        return toResult(name, input);
      },
    })
  );
  await using direct = await open(tools);
  await using searching = await open([...tools, toolSearch()]);
  await using coding = await open([...tools, codeMode({ limits: { cpuMs: 20_000 } })]);
  const lists = await Promise.all(
    [direct, searching, coding].map(async (client) => toTokens(await client.listTools())),
  );
  const rows: { readonly goal: string; readonly costs: readonly Cost[] }[] = [];
  for (const { goal, queries, code } of TASKS.filter(({ catalogue }) => catalogue === name)) {
    const call = async (client: Connection, name: string, input: Readonly<Record<string, unknown>>): Promise<Cost> => {
      const { content, isError } = await client.callTool(name, input);
      if (isError) throw new Error(`${goal}: ${JSON.stringify(content)}`);
      return { calls: 1, tokens: toTokens({ name, input }) + toTokens(content) };
    };
    const sum = (costs: readonly Cost[]) => ({
      calls: costs.reduce((sum, { calls }) => sum + calls, 0),
      tokens: costs.reduce((sum, { tokens }) => sum + tokens, 0),
    });
    const searches = async (client: Connection, by: string) =>
      await Promise.all(queries.map((query) => call(client, by, { query })));
    made.length = 0;
    const coded = [...await searches(coding, "search_api"), await call(coding, "run_code_with_effects", { code })];
    const calls = made.slice();
    const direct1 = [];
    for (const { name, input } of calls) direct1.push(await call(direct, name, input));
    const searched = await searches(searching, "search_tools");
    for (const { name, input } of calls) searched.push(await call(searching, "call_tool", { name, arguments: input }));
    rows.push({ goal, costs: [direct1, searched, coded].map(sum) });
  }
  return { lists, rows };
}

const write = (value: number) => value.toLocaleString("en-US");
console.log("| task | calls: direct | search | code | tokens: direct | search | code |");
console.log("| --- | --: | --: | --: | --: | --: | --: |");
for (const name of ["github", "kubernetes"] as const) {
  const { lists, rows } = await measure(name);
  console.log(`| the list of ${name} | | | | ${lists.map(write).join(" | ")} |`);
  for (const { goal, costs } of rows) {
    console.log(
      `| ${goal} | ${costs.map(({ calls }) => calls).join(" | ")} | ${
        costs.map(({ tokens }) => write(tokens)).join(" | ")
      } |`,
    );
  }
}
