// A minimal program that uses zod: it creates one schema.
import { z } from "zod";

/** The input schema of a tool that adds two numbers. */
export const pair = z.object({ a: z.number(), b: z.number() });
