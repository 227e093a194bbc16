import { resource } from "@x/mcp";
import { store } from "./store.ts";

/** The notes by title. */
export const note = resource({
  uri: "note://{title}",
  name: "note",
  services: { store },
  list: ({ services: { store } }) => [...store.keys()].map((title) => ({ uri: `note://${title}`, name: title })),
  complete: {
    title: (typed, _, { services: { store } }) => [...store.keys()].filter((title) => title.startsWith(typed)),
  },
  read: ({ title }, { services: { store } }) => store.get(title),
});
