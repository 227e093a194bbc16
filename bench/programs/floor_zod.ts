// Runs floor_stdio.ts after loading zod and creating a schema. The order of the imports matters.
import "./zod_pair.ts";
import "./floor_stdio.ts";
