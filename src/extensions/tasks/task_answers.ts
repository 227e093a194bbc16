/**
 * The questions of a task's handler, and the answers of clients, in the task's record.
 */
import { McpError, type Params } from "../../library.ts";
import type { TaskRecord, TaskWork } from "./task_record.ts";

/**
 * Maximum number of further answers in a record, because every change of the task writes them again. The process that
 * runs the task checks and removes them within milliseconds, unless its handler has not asked the question again yet.
 */
const MAX_FURTHER = 100;

/** Returns the answers in a request that may be valid. */
export function toAnswers(responses: Params): [key: string, value: unknown][] {
  // No valid answer is null, and a stored null closes a question.
  return Object.entries(responses).filter(([, value]) => value !== null);
}

/**
 * Adds answers to a record. An answer to a question that already has an answer comes after all earlier answers, because
 * the earlier answers may be invalid. Ignores an answer that the record already contains, and an answer to a closed
 * question. Returns the same record if nothing has changed.
 */
export function withAnswers(record: TaskRecord, added: Params): TaskRecord {
  const { work } = record;
  if (!work) return record;
  let { answers } = work;
  const further = [...work.further ?? []];
  for (const [key, value] of Object.entries(added)) {
    const stored = toStored({ answers, further }, key);
    if (stored.some((each) => each === null || isSame(each, value))) continue;
    if (stored.length) further.push([key, value]);
    else answers = { ...answers, [key]: value };
  }
  if (further.length > MAX_FURTHER) {
    throw McpError.busy(
      `Cannot store the answers: ${MAX_FURTHER} answers to questions that already had an answer were not checked yet; try again`,
    );
  }
  const isChanged = answers !== work.answers || further.length !== (work.further?.length ?? 0);
  return isChanged ? withStatus({ ...record, work: { ...work, answers, ...further.length && { further } } }) : record;
}

/** Returns the answers to a question, in the order in which they were stored. */
export function toStoredAnswers({ work }: TaskRecord, key: string): readonly unknown[] {
  return work ? toStored(work, key) : [];
}

function toStored({ answers, further = [] }: Pick<TaskWork, "answers" | "further">, key: string): readonly unknown[] {
  const more = further.filter(([each]) => each === key).map(([, value]) => value);
  return Object.hasOwn(answers, key) ? [answers[key], ...more] : more;
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Removes invalid answers to a question. The first of the remaining answers becomes the answer. */
export function withoutAnswers(record: TaskRecord, key: string, invalid: readonly unknown[]): TaskRecord {
  const { work } = record;
  if (!work) return record;
  const rest = toStored(work, key).filter((value) => !invalid.some((each) => isSame(each, value)));
  const { [key]: _, ...answers } = work.answers;
  const further = work.further?.filter(([each]) => each !== key);
  const without = { ...record, work: { ...work, answers, further } };
  return rest.reduce<TaskRecord>((next, value) => withAnswers(next, { [key]: value }), withStatus(without));
}

/** Removes the further answers to questions whose stored answer is valid. */
export function withoutFurtherAnswers(record: TaskRecord, settled: ReadonlySet<string>): TaskRecord {
  const { work } = record;
  if (!work?.further?.some(([key]) => settled.has(key))) return record;
  return { ...record, work: { ...work, further: work.further.filter(([key]) => !settled.has(key)) } };
}

/** Adds a question, and opens it again if an earlier run has closed it. */
export function withQuestion(record: TaskRecord, key: string, question: TaskWork["questions"][string]): TaskRecord {
  const { work } = record;
  if (!work) return record;
  const { [key]: last, ...others } = work.answers;
  const answers = last === null ? others : work.answers;
  return withStatus({ ...record, work: { ...work, questions: { ...work.questions, [key]: question }, answers } });
}

/** Closes questions that the handler no longer asks. */
export function withoutQuestions(record: TaskRecord, keys: readonly string[]): TaskRecord {
  const { answers = {} } = record.work ?? {};
  return withAnswers(record, Object.fromEntries(keys.filter((key) => !Object.hasOwn(answers, key)).map(toNoAnswer)));
}

// No valid answer is null, so a further run that asks this question again gets another answer.
function toNoAnswer(key: string): readonly [string, null] {
  return [key, null];
}

function withStatus(record: TaskRecord): TaskRecord {
  const { questions = {}, answers = {} } = record.work ?? {};
  const isAsking = Object.keys(questions).some((key) => !Object.hasOwn(answers, key));
  return { ...record, status: isAsking ? "input_required" : "working" };
}
