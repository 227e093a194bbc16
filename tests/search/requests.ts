// Requests as a person writes them to an AI application, and the tools that serve them. They were written before any
// ranking was run on the catalogues. Do not change a request because a ranking fails it: then the measure would measure
// how well the requests suit the ranking.
import type { CatalogueName } from "./catalogues.ts";

/** How far a request is from the words of the tool that it wants. */
export type Level =
  /** Words of the tool's name occur in the request. */
  | "easy"
  /** The request names the action and the thing in other words. */
  | "reworded"
  /** The request names a goal or a symptom, not the action. */
  | "hard";

/** A request, and the names of the tools that a person accepts for it. */
export interface PlainRequest {
  readonly level: Level;
  readonly text: string;
  readonly want: readonly string[];
}

// Kubernetes lists a kind once for each version of its API, and a person accepts every version.
const APPS = ["AppsV1", "AppsV1beta1", "AppsV1beta2", "ExtensionsV1beta1"];
const ACCESS = ["AuthorizationV1", "AuthorizationV1beta1"];
const BATCH = ["BatchV1beta1", "BatchV2alpha1"];
const EVENTS = ["CoreV1", "EventsV1beta1"];
const SCALING = ["AutoscalingV1", "AutoscalingV2beta1", "AutoscalingV2beta2"];

/** The requests for each catalogue: five of each level. */
export const REQUESTS: Readonly<Record<CatalogueName, readonly PlainRequest[]>> = {
  github: [
    easy("Create an issue: the login page is broken on phones", "issues_create"),
    easy("Show me the branches in this repo", "repos_list-branches"),
    easy("Merge pull request 42 please", "pulls_merge", "pulls_merge-async"),
    easy("Add the label urgent to issue 7", "issues_add-labels", "issues_set-labels"),
    easy("What does the readme say?", "repos_get-readme"),

    reworded("Close that ticket, it's done", "issues_update"),
    reworded("Who has access to the repo?", "repos_list-collaborators", "repos_list-teams"),
    reworded(
      "Try the failed build again",
      "actions_re-run-workflow-failed-jobs",
      "actions_re-run-workflow",
      "actions_re-run-job-for-workflow-run",
      "checks_rerequest-suite",
      "checks_rerequest-run",
    ),
    reworded("Ask Maria to look over my change", "pulls_request-reviewers"),
    reworded("Kick Tom out of our company", "orgs_remove-member", "orgs_remove-membership-for-user"),

    hard("Who am I logged in as?", "users_get-authenticated"),
    hard(
      "Did anybody leak a password in our code?",
      "secret-scanning_list-alerts-for-repo",
      "secret-scanning_list-alerts-for-org",
    ),
    hard(
      "Nobody should be able to push straight to main",
      "repos_update-branch-protection",
      "repos_update-pull-request-review-protection",
      "repos_create-repo-ruleset",
      "repos_update-repo-ruleset",
      "repos_create-org-ruleset",
      "repos_update-org-ruleset",
    ),
    hard(
      "Why is last night's build red?",
      "actions_download-job-logs-for-workflow-run",
      "actions_download-workflow-run-logs",
      "actions_download-workflow-run-attempt-logs",
      "actions_list-jobs-for-workflow-run",
      "actions_list-jobs-for-workflow-run-attempt",
      "checks_list-annotations",
    ),
    hard("Make sure that people outside can't see our code any more", "repos_update"),
  ],
  kubernetes: [
    easy("List the pods in the shop namespace", "listCoreV1NamespacedPod"),
    easy("Delete the namespace staging with everything in it", "deleteCoreV1Namespace"),
    easy("Show me the log of the checkout pod", "readCoreV1NamespacedPodLog"),
    easy("Create a config map with these settings", "createCoreV1NamespacedConfigMap"),
    easy(
      "Which cron jobs do we have?",
      ...BATCH.map((api) => `list${api}NamespacedCronJob`),
      ...BATCH.map((api) => `list${api}CronJobForAllNamespaces`),
    ),

    reworded(
      "Restart my deployment",
      ...APPS.map((api) => `patch${api}NamespacedDeployment`),
      ...APPS.map((api) => `replace${api}NamespacedDeployment`),
    ),
    reworded("Which machines does the cluster run on?", "listCoreV1Node"),
    reworded(
      "The shop needs five copies instead of two",
      ...APPS.map((api) => `patch${api}NamespacedDeploymentScale`),
      ...APPS.map((api) => `replace${api}NamespacedDeploymentScale`),
      ...APPS.map((api) => `patch${api}NamespacedDeployment`),
    ),
    reworded(
      "Change the database password that the app reads",
      "patchCoreV1NamespacedSecret",
      "replaceCoreV1NamespacedSecret",
    ),
    reworded(
      "Run this container once and stop when it is finished",
      "createBatchV1NamespacedJob",
      "createCoreV1NamespacedPod",
    ),

    hard(
      "Am I allowed to remove things here?",
      ...ACCESS.map((api) => `create${api}SelfSubjectAccessReview`),
      ...ACCESS.map((api) => `create${api}SelfSubjectRulesReview`),
    ),
    hard("Put the site online under shop.example.com", "createExtensionsV1beta1NamespacedIngress"),
    hard("Take that machine out of rotation so nothing new lands on it", "patchCoreV1Node", "replaceCoreV1Node"),
    hard(
      "What went wrong last night?",
      ...EVENTS.map((api) => `list${api}NamespacedEvent`),
      ...EVENTS.map((api) => `list${api}EventForAllNamespaces`),
      "readCoreV1NamespacedPodLog",
    ),
    hard(
      "Start more of it by itself when it gets busy",
      ...SCALING.map((api) => `create${api}NamespacedHorizontalPodAutoscaler`),
    ),
  ],
  published: [
    easy("Read the file notes.txt", "read_text_file", "read_file", "read_multiple_files"),
    easy("Take a screenshot of this page", "browser_take_screenshot"),
    easy("Search the web for the weather in Oslo tomorrow", "tavily_search", "firecrawl_search"),
    easy("Move this Notion page under Projects", "API-move-page"),
    easy("Which Sentry projects do we have?", "find_projects"),

    reworded("Make a folder for the holiday photos", "create_directory"),
    reworded("Remember that Ada works at the bank", "create_entities", "add_observations", "create_relations"),
    reworded("Mark that crash as fixed", "update_issue"),
    reworded("Tell me when the price on this site changes", "firecrawl_monitor_create"),
    reworded("Leave a note for Ben on that Notion page", "API-create-a-comment"),

    hard("How do I use the new router in Next.js?", "query-docs", "resolve-library-id"),
    hard("Does our shop still look right on a phone?", "browser_resize", "browser_take_screenshot"),
    hard("Act as if the internet was gone", "browser_network_state_set"),
    hard("Which downloads are eating up my disk?", "list_directory_with_sizes", "get_file_info"),
    hard("Is there any science on coffee and sleep?", "firecrawl_research_search_papers", "tavily_research"),
  ],
};

function easy(text: string, ...want: readonly string[]): PlainRequest {
  return { level: "easy", text, want };
}

function reworded(text: string, ...want: readonly string[]): PlainRequest {
  return { level: "reworded", text, want };
}

function hard(text: string, ...want: readonly string[]): PlainRequest {
  return { level: "hard", text, want };
}
