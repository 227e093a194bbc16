import { resource } from "@x/mcp";
import { store } from "./store.ts";

/** A resource for each note, with the note's title in the URI. */
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
