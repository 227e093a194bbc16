/**
 * Expands the URI templates that this library supports.
 *
 * @module
 */

/** Functions for URI templates. */
export interface UriTemplates {
  /** The names of the variables. */
  names(template: string): readonly string[];
  /** Expands a template. Variables without a value are left out. */
  expand(template: string, values: Readonly<Record<string, string>>): string;
}

/** Creates the functions. */
export function createUriTemplates(): UriTemplates {
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

  // Keeps reserved and already encoded characters.
  function encodeOpen(text: string): string {
    return encodeURI(text).replace(/%25(?=[\da-f]{2})/gi, "%").replace(/%5B|%5D/g, decodeURIComponent);
  }

  return { names, expand };
}
