// Loads zod and creates a schema, and then runs floor_stdio.ts. The imports must stay in this order.
import "./zod_pair.ts";
import "./floor_stdio.ts";
