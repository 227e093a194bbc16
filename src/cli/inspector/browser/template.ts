/**
 * URI templates, as RFC 6570 has them.
 *
 * @module
 */

/** Works with templates. */
export interface Templates {
  /** Names of the variables, each once. */
  names(template: string): readonly string[];
  /** The URI with these values. */
  expand(template: string, values: Readonly<Record<string, string>>): string;
}

/** Makes the tools. */
export function createTemplates(): Templates {
  const expression = /\{([+#./;?&]?)([^{}]*)\}/g;

  function toSpecs(
    list: string,
  ): readonly { readonly name: string; readonly isList: boolean; readonly length?: number }[] {
    return list.split(",").map((spec) => {
      const [, name = spec, star, length] = /^([^*:]*)(\*?)(?::(\d+))?$/.exec(spec) ?? [];
      return { name, isList: star === "*", length: length === undefined ? undefined : Number(length) };
    });
  }

  function names(template: string): readonly string[] {
    const all = [...template.matchAll(expression)].flatMap(([, , list]) => toSpecs(list).map(({ name }) => name));
    return [...new Set(all)].filter(Boolean);
  }

  function expand(template: string, values: Readonly<Record<string, string>>): string {
    return template.replace(expression, (_, operator: string, list: string) => {
      const isNamed = operator !== "" && ";?&".includes(operator);
      const isOpen = operator === "+" || operator === "#";
      const between = operator === "?" ? "&" : operator !== "" && "./;&".includes(operator) ? operator : ",";
      const encode = (text: string) =>
        isOpen
          ? encodeURI(text.toWellFormed()).replaceAll("%25", "%").replace(/%(?![\da-f]{2})/gi, "%25")
          : encodeURIComponent(text.toWellFormed()).replace(/[!'()*]/g, (c) =>
            `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
      const parts = toSpecs(list).flatMap(({ name, isList, length }) => {
        const value = Object.hasOwn(values, name) ? values[name] : "";
        if (!value) return [];
        // A list is typed as it will stand: with slashes in a path, with commas elsewhere.
        const items = isList ? value.split(operator === "/" ? "/" : ",") : [[...value].slice(0, length).join("")];
        if (!isNamed) return items.map(encode).join(between);
        return items.map((item) => `${name}=${encode(item)}`).join(between);
      });
      if (!parts.length) return "";
      return (operator === "+" ? "" : operator) + parts.join(between);
    });
  }

  return { names, expand };
}
