// The theme of the site: the default theme of VitePress, with diagrams and a style sheet.
import DefaultTheme from "vitepress/theme";
import { useData } from "vitepress";
import { defineComponent, h, onMounted, ref, watch } from "vue";
import "./style.css";

let count = 0;

/** Draws a Mermaid diagram. Shows the source of the diagram until the browser has loaded Mermaid. */
const Diagram = defineComponent({
  props: { source: { type: String, required: true } },
  setup(props) {
    const { isDark } = useData();
    const source = decodeURIComponent(props.source);
    const svg = ref("");
    const draw = async () => {
      const { default: mermaid } = await import("mermaid");
      mermaid.initialize({
        startOnLoad: false,
        theme: isDark.value ? "dark" : "default",
        fontFamily: "inherit",
        sequence: { wrap: true, width: 120, actorMargin: 40, mirrorActors: false },
      });
      svg.value = (await mermaid.render(`diagram-${++count}`, source)).svg;
    };
    onMounted(draw);
    watch(isDark, draw);
    return () =>
      svg.value
        ? h("div", { class: "diagram", tabindex: 0, innerHTML: svg.value })
        : h("pre", { class: "diagram" }, source);
  },
});

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("Diagram", Diagram);
  },
};
