/**
 * URI templates, as far as this library serves them.
 *
 * @module
 */

/** Works with templates. */
export interface Templates {
  /** Names of the variables. */
  names(template: string): readonly string[];
  /** The URI with these values; what has none is left out. */
  expand(template: string, values: Readonly<Record<string, string>>): string;
}

/** Makes the tools. */
export function createTemplates(): Templates {
  const expression = /\{([+#./;?&]?)([^{}]*)\}/g;

  function names(template: string): readonly string[] {
    return [...new Set([...template.matchAll(expression)].flatMap(([, , list]) => list.split(",")))];
  }

  function expand(template: string, values: Readonly<Record<string, string>>): string {
    return template.replace(expression, (_, operator: string, list: string) => {
      const isNamed = operator !== "" && ";?&".includes(operator);
      const isOpen = operator === "+" || operator === "#";
      const between = operator === "?" ? "&" : operator !== "" && "./;&".includes(operator) ? operator : ",";
      const parts = list.split(",").filter((name) => Object.hasOwn(values, name) && values[name] !== "").map((name) => {
        const value = (isOpen ? encodeOpen : encode)(values[name].toWellFormed());
        return isNamed ? `${name}=${value}` : value;
      });
      return parts.length ? (operator === "+" ? "" : operator) + parts.join(between) : "";
    });
  }

  function encode(text: string): string {
    return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  }

  // What has a meaning in a URI stays, and so does what is encoded already.
  function encodeOpen(text: string): string {
    return encodeURI(text).replace(/%25(?=[\da-f]{2})/gi, "%").replace(/%5B|%5D/g, decodeURIComponent);
  }

  return { names, expand };
}
