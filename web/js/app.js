// The page begins here: who is signed in sees the shell with the screen of the address, who is not the sign-in.
import { render } from "preact";
import { signal } from "@preact/signals";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { html, t } from "./page.js";
import { reloadOnceThere, token } from "./api.js";
import { place } from "./router.js";
import { forgetAll, link } from "./store.js";
import "./texts/shell.js";
import { Confirmations, Skeleton, Toast } from "./parts/states.js";

/** Places, and the files of screens/ and css/ that draw them. The first that fits counts. */
export const ROUTES = [
  [/^\/$/, "overview"],
  [/^\/bids$/, "bids"],
  [/^\/new$/, "edit"],
  [/^\/tasks\/(\d+)$/, "task"],
  [/^\/tasks\/(\d+)\/edit$/, "edit"],
  [/^\/listings$/, "listings"],
  [/^\/listings\/(\d+)$/, "listing"],
  [/^\/list$/, "list_item"],
  [/^\/wallet$/, "wallet"],
  [/^\/history$/, "history"],
  [/^\/venues$/, "venues"],
  [/^\/settings$/, "settings"],
  [/^\/admin$/, "admin"],
  [/^\/more$/, "more"],
];

/** The screen's name and the id in its path, or null for a place that is nowhere. */
export function screenAt(path) {
  for (const [pattern, name] of ROUTES) {
    const found = pattern.exec(path);
    if (found) return { name, id: found[1] ? Number(found[1]) : null };
  }
  return null;
}

const loaded = new Map();

/** Loads a screen with its style, once. */
function load(name) {
  if (!loaded.has(name)) {
    const both = Promise.all([import(`./screens/${name}.js`), styled(name)]).then(([module]) => module.default);
    loaded.set(name, both);
    both.catch(() => loaded.delete(name));
  }
  return loaded.get(name);
}

function styled(name) {
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL(`../css/${name}.css`, import.meta.url);
    link.onload = resolve;
    link.onerror = () => (link.remove(), reject(new Error(`no style of ${name}`)));
    document.head.append(link);
  });
}

/** What is drawn of a screen: where that goes wrong, the brake and the ways to other places stay. */
function Drawn({ draw, ...given }) {
  const [failure, again] = useErrorBoundary((error) => console.error(error));
  if (failure) return html`<div class="note bad" role="alert"><p>${t("broken")}</p><button class="button" onClick=${again}>${t("again")}</button></div>`;
  return html`<${draw} ...${given} />`;
}

/** A screen; if it cannot be fetched it is requested again, by its button or once the server answers, and then the whole page. */
function Screen({ name, id = null, query = {} }) {
  const [found, setFound] = useState({ name: "", draw: null, hasFailed: false });
  const [turn, setTurn] = useState({ count: 0, isAsked: false });
  useEffect(() => {
    let isGone = false;
    const fail = () => {
      setFound({ name, draw: null, hasFailed: true });
      if (turn.count) reloadOnceThere(turn.isAsked).catch(() => {});
    };
    load(name).then((draw) => isGone || setFound({ name, draw, hasFailed: false }), () => isGone || fail());
    return () => (isGone = true);
  }, [name, turn]);
  const again = (isAsked) => setTurn(({ count }) => ({ count: count + 1, isAsked }));
  const isThere = ["live", "polling"].includes(link.value);
  useEffect(() => {
    if (isThere && found.hasFailed) again(false);
  }, [isThere, found.hasFailed]);
  if (found.name === name && found.draw) return html`<${Drawn} key=${`${name} ${id}`} draw=${found.draw} id=${id} query=${query} />`;
  if (found.name === name && found.hasFailed) {
    return html`<div class="note bad" role="alert"><p>${t("refusal.0.read")}</p><button class="button" onClick=${() => again(true)}>${t("again")}</button></div>`;
  }
  return html`<${Skeleton} rows=${3} tall=${120} />`;
}

function Page() {
  const { path, query } = place.value;
  if (!token.value) return html`<${Screen} name="signin" query=${query} />`;
  const screen = screenAt(path);
  if (!shell.value) return html`<${Skeleton} rows=${3} tall=${120} />`;
  return html`<${shell.value} here=${path}>${screen
    ? html`<${Screen} ...${screen} query=${query} />`
    : html`<div class="empty big"><h1>${t("nowhere.title")}</h1><p>${t("nowhere.what")}</p><a class="button" href="#/">${t("nowhere.do")}</a></div>`}</${shell.value}>`;
}

// Who is not signed in needs no shell yet.
const shell = signal(null);
let isFollowing = false;
const withShell = (isSecond = false) => Promise.all([import("./parts/shell.js"), import("./events.js")]).then(([drawn, events]) => {
  if (!isFollowing) events.followAlways();
  isFollowing = true;
  shell.value = drawn.Shell;
}, () => {
  if (isSecond) reloadOnceThere().catch(() => {});
  setTimeout(() => withShell(true), 1000);
});
token.subscribe((value) => (value ? withShell() : forgetAll()));
render(html`<${Page} /><${Confirmations} /><${Toast} />`, document.getElementById("app"));
