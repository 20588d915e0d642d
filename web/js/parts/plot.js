// uPlot with its style, loaded once: only who looks at a chart needs it.
import { effect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { unit } from "../format.js";
import { t } from "../page.js";
import { theme } from "./shell.js";

let library = null;

function loadPlot() {
  library ||= Promise.all([import("/web/vendor/uplot.mjs"), styled()]).then(([module]) => module.default);
  library.catch(() => (library = null));
  return library;
}

function styled() {
  return new Promise((resolve, reject) => {
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("../../vendor/uplot.css", import.meta.url), onload: resolve, onerror: reject }));
  });
}

/** A style's value, such as a colour of the theme. */
export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * Keeps a plot in an element as long as that is shown; returns references to both. `make(UPlot, width)` returns the plot's
 * options and columns, `begin(plot)` what ends whatever else was begun for it.
 */
export function usePlot({ height, make, begin = () => () => {} }) {
  const box = useRef(null);
  const plot = useRef(null);
  useEffect(() => {
    let isGone = false;
    const ends = [];
    loadPlot().then((UPlot) => {
      if (isGone || !box.current) return;
      const [options, columns] = make(UPlot, box.current.clientWidth);
      const made = (plot.current = new UPlot(options, columns, box.current));
      const watch = new ResizeObserver(([entry]) => plot.current?.setSize({ width: Math.floor(entry.contentRect.width), height }));
      watch.observe(box.current);
      // Colours and amounts are read at each drawing: another theme or unit is the same picture once more.
      const redraw = () => plot.current?.redraw(false, true);
      const end = effect(() => (theme.value, unit.value, queueMicrotask(redraw)));
      const system = matchMedia("(prefers-color-scheme: light)");
      system.addEventListener("change", redraw);
      ends.push(() => watch.disconnect(), end, () => system.removeEventListener("change", redraw), begin(made));
    }, () => box.current && (box.current.textContent = t("plot.away")));
    return () => {
      isGone = true;
      for (const end of ends) end();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [height]);
  return [box, plot];
}
