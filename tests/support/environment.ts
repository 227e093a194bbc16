// Environment variables of this process. All test files of one run share them with the programs that they start.
import process from "node:process";

/** Runs `use` with variables, and restores the environment, so that no program of another test inherits them. */
export async function withEnvironment<T>(
  variables: Readonly<Record<string, string>>,
  use: () => Promise<T>,
): Promise<T> {
  const before = Object.keys(variables).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, variables);
  try {
    return await use();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}
