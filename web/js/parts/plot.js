// uPlot with its style, loaded once: only who looks at a chart needs it.
let library = null;

export function loadPlot() {
  library ||= Promise.all([import("/web/vendor/uplot.mjs"), styled()]).then(([module]) => module.default);
  library.catch(() => (library = null));
  return library;
}

function styled() {
  return new Promise((resolve, reject) => {
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/web/vendor/uplot.css", onload: resolve, onerror: reject }));
  });
}

/** A style's value, such as a colour of the theme. */
export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
