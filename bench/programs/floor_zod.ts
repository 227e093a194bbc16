// The bare loop of floor_stdio.ts, after zod has been loaded and has made a schema. The order of the imports matters.
import "./zod_pair.ts";
import "./floor_stdio.ts";
