// Loaded before a test's own modules: the page's bare names, and as much of a browser as modules ask for when they begin.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

const web = new URL("../../../web/", import.meta.url);
const page = readFileSync(new URL("index.html", web), "utf8");
const made = new URL("js/texts/codes.js", web).href; // the server makes it
const names = JSON.parse(/<script type="importmap">(.*?)<\/script>/s.exec(page)[1]).imports;

registerHooks({
  resolve(name, context, next) {
    const path = names[name];
    if (path) return { url: new URL(path.replace("/web/", ""), web).href, format: "module", shortCircuit: true };
    if (new URL(name, context.parentURL).href === made) return { url: made, format: "module", shortCircuit: true };
    return next(name, context);
  },
  load(url, context, next) {
    if (url === made) return { source: process.env.MADE_MODULE, format: "module", shortCircuit: true };
    return next(url, url.startsWith(web.href) ? { ...context, format: "module" } : context);
  },
});

class Storage {
  #kept = new Map();
  getItem = (name) => this.#kept.get(name) ?? null;
  setItem = (name, value) => void this.#kept.set(name, String(value));
  removeItem = (name) => void this.#kept.delete(name);
}

const place = { hash: "", origin: "http://127.0.0.1", pathname: "/" };
const given = {
  localStorage: new Storage(),
  sessionStorage: new Storage(),
  location: place,
  history: { replaceState: (_state, _title, hash) => (place.hash = hash) },
  window: globalThis,
  document: Object.assign(new EventTarget(), { title: "", documentElement: { dataset: {} }, querySelectorAll: () => [], querySelector: () => null }),
  IntersectionObserver: class { observe() {} unobserve() {} },
  matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
  addEventListener: () => {},
  removeEventListener: () => {},
  requestAnimationFrame: (draw) => setTimeout(draw, 0),
  scrollTo: () => {},
  scrollY: 0,
};
for (const [name, value] of Object.entries(given)) {
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
}
// Timers of modules that tick for ever do not keep a test alive.
const { setInterval: real } = globalThis;
globalThis.setInterval = (...given) => {
  const timer = real(...given);
  timer.unref();
  return timer;
};

