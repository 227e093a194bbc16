// A server whose tools have schemas of every shape, including schemas that are too large, too deep or malicious.
import { createServer, tool } from "@x/mcp";

type Schema = Readonly<Record<string, unknown>>;

const echo = (name: string, input: Schema) =>
  tool({ name, input: { type: "object", ...input }, run: (given) => ({ given }) });

const point = {
  type: "object",
  properties: { x: { type: "number" }, y: { type: "number", default: 0 } },
  required: ["x"],
};

const nested = echo("nested", {
  properties: {
    address: {
      type: "object",
      description: "Where to deliver",
      properties: {
        street: { type: "string", minLength: 2 },
        geo: { $ref: "#/$defs/point" },
      },
      required: ["street"],
    },
    points: { type: "array", items: { $ref: "#/$defs/point" }, minItems: 1, maxItems: 2 },
    grid: { type: "array", items: { type: "array", items: { type: "integer" } } },
    shape: {
      oneOf: [
        {
          type: "object",
          properties: { kind: { const: "circle" }, radius: { type: "number", minimum: 1 } },
          required: ["kind", "radius"],
        },
        {
          type: "object",
          properties: { kind: { const: "square" }, side: { type: "number", default: 3 } },
          required: ["kind", "side"],
        },
      ],
    },
    either: { anyOf: [{ type: "string" }, { type: "integer" }, { type: "null" }] },
    labels: { type: "object", additionalProperties: { type: "string" } },
    options: {
      allOf: [{ type: "object", properties: { deep: { type: "boolean", default: true } } }, {
        properties: { level: { type: "integer", default: 4 } },
      }],
      default: {},
    },
    open: {
      type: "object",
      properties: { known: { type: "string" } },
      additionalProperties: { type: "integer" },
    },
    slow: { type: "string", pattern: "^(a+)+$", default: `${"a".repeat(60)}!` },
  },
  required: ["address", "points", "shape", "either"],
  $defs: { point },
});

const wideProperties = Object.fromEntries(
  Array.from({ length: 9000 }, (_, at) => [`field_${at}`, { type: "string", default: `${at}` }]),
);

const wide = echo("wide", { properties: wideProperties, required: ["field_8999", "field_5000"] });

/** Returns a schema of nested objects that are all required. */
function nest(depth: number, breadth: number): Schema {
  let schema: Schema = { type: "string" };
  for (let at = 0; at < depth; at++) {
    const names = Array.from({ length: breadth }, (_, one) => `part_${one}`);
    schema = {
      type: "object",
      properties: Object.fromEntries(names.map((name) => [name, schema])),
      required: names,
    };
  }
  return schema;
}

const circle = echo("circle", {
  properties: { node: { $ref: "#/$defs/node" } },
  required: ["node"],
  $defs: {
    node: {
      type: "object",
      properties: { left: { $ref: "#/$defs/node" }, right: { $ref: "#/$defs/node" }, name: { type: "string" } },
      required: ["left", "right"],
    },
  },
});

const many = echo("many", {
  properties: {
    pick: { type: "string", enum: Array.from({ length: 20_000 }, (_, at) => `value ${at}`) },
    list: { type: "array", items: { type: "string" }, default: Array.from({ length: 5000 }, () => "x") },
  },
});

export default createServer({
  name: "forms",
  version: "1.0.0",
  handlers: [nested, wide, echo("deep", { properties: { top: nest(60, 1) }, required: ["top"] }), circle, many],
});
