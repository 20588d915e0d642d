// The place in the page: #/path?query. What is filtered or chosen stands in the query, so that a link shows the same.
import { signal } from "@preact/signals";

/** {path, query} of this moment; query is a plain object of texts. */
export const place = signal(read());

function read() {
  const [path, query] = (location.hash.slice(1) || "/").split("?");
  return { path: path || "/", query: Object.fromEntries(new URLSearchParams(query)) };
}

const scrolled = new Map();
let shown = location.hash;
let mayLeave = null;
// What the browser remembers of a place that was seen: a link leads to a place without it, going back does not.
const SEEN = { isSeen: true };
const mark = () => history.replaceState(SEEN, "", location.hash);
mark();
addEventListener("hashchange", () => {
  if (mayLeave && read().path !== place.peek().path) {
    askToLeave();
    return;
  }
  const isBack = history.state?.isSeen === true;
  mark();
  scrolled.set(shown, scrollY);
  const before = place.peek().path;
  shown = location.hash;
  place.value = read();
  if (place.peek().path !== before) {
    const top = isBack ? scrolled.get(shown) || 0 : 0;
    requestAnimationFrame(() => {
      document.querySelector("main")?.focus({ preventScroll: true });
      scrollTo(0, top);
    });
  }
});

/** Has `may` asked, which promises a yes or no, before this place is left; returns a function that ends that. */
export function holdPlace(may) {
  mayLeave = may;
  return () => {
    if (mayLeave === may) mayLeave = null;
  };
}

async function askToLeave() {
  const wanted = location.hash;
  history.replaceState(SEEN, "", shown);
  if (!(await mayLeave())) return;
  mayLeave = null;
  location.hash = wanted;
}

const written = (path, query) => {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return `#${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
};

/** Goes to another place. */
export function go(path, query = {}) {
  location.hash = written(path, query);
}

/** Goes on from a place to another, unless somebody has left it while an answer was awaited. */
export function goOn(from, path) {
  if (place.peek().path === from) go(path);
}

/** Changes the query of this place, without a step in the browser's history. */
export function setQuery(values) {
  const { path, query } = place.peek();
  const next = { ...query, ...values };
  history.replaceState(SEEN, "", written(path, next));
  shown = location.hash;
  place.value = read();
}
