// Keys for those who do not reach for the mouse. They act on nothing by themselves: what matters opens a dialog first.
import { effect, signal } from "@preact/signals";
import { go, place } from "./router.js";
import { brakeTo } from "./parts/brake.js";

/** "help", "search", or null: what of keys.js is open. */
export const opened = signal(null);

// Whoever goes somewhere is done with them.
let shown = place.peek().path;
effect(() => {
  if (place.value.path !== shown) opened.value = null;
  shown = place.value.path;
});

/** [keys, name of the text, values]: what the help shows. */
export const KEYS = [
  ["?", "keys.help"],
  ["/", "word.search"],
  ["g o", "keys.go", { name: "Overview" }],
  ["g b", "keys.go", { name: "Bids" }],
  ["g l", "keys.go", { name: "Listings" }],
  ["g w", "keys.go", { name: "Wallet" }],
  ["g h", "keys.go", { name: "History" }],
  ["n", "word.new_task"],
  ["j k", "keys.rows"],
  ["Enter", "keys.open"],
  ["e", "keys.edit"],
  ["s", "keys.run"],
  [".", "keys.brake"],
];

const PLACES = { o: "/", b: "/bids", t: "/bids", l: "/listings", w: "/wallet", h: "/history" };
let before = "";

/** Rows of a list may be walked by j and k: every element with data-row is one, focused by its link. */
function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  const at = rows.findIndex((row) => row === document.activeElement || row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  (next?.matches("a, button") ? next : next?.querySelector("a, button"))?.focus();
}

/** Presses the button that a screen marks for a key, such as data-key="s". */
function press(key) {
  document.querySelector(`[data-key="${key}"]:not([disabled])`)?.click();
}

export function handleKey(event) {
  if (event.key === "k" && (event.metaKey || event.ctrlKey)) {
    event.preventDefault();
    opened.value = "search";
    return;
  }
  if (event.metaKey || event.ctrlKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
  if (opened.value) return; // it is on its way: what is typed meanwhile is meant for it
  const { key } = event;
  const isSecond = before === "g";
  before = key === "g" && !isSecond ? "g" : "";
  if (isSecond && PLACES[key]) go(PLACES[key]);
  else if (key === "?") opened.value = "help";
  else if (key === "/") (event.preventDefault(), (opened.value = "search"));
  else if (key === "n") go("/new");
  else if (key === "j") step(1);
  else if (key === "k") step(-1);
  else if (key === ".") brakeTo("halt");
  else if ((key === "e" || key === "s") && /^\/(tasks|listings)\//.test(place.peek().path)) press(key);
}
