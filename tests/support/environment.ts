// Sets environment variables of this process. They are global: all test files in one run share them, and child
// processes inherit them.
import process from "node:process";

/**
 * Runs `use` with additional variables, and then restores the environment, so that no other test's child process
 * inherits them.
 */
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
