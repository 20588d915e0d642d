// What stands around every screen: where one can go, the brake, how amounts and colours are shown, and the connection.
import { effect, signal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { versionOfServer } from "../api.js";
import { html, t } from "../page.js";
import { clock, short, span, unitName } from "../format.js";
import { device } from "../kept.js";
import { handleKey, opened } from "../keys.js";
import { heard, link, me, now } from "../store.js";
import { Brake } from "./brake.js";
import { Icon, Logo, UnitSwitch } from "./basics.js";

/** Places of the navigation, with the beginnings of paths that belong to each. */
export const NAV = [
  ["/", "overview", /^\/$/],
  ["/bids", "bids", /^\/(bids|tasks|new)/],
  ["/listings", "listings", /^\/list/],
  ["/wallet", "wallet", /^\/wallet/],
  ["/history", "history", /^\/history/],
  ["/venues", "venues", /^\/venues/],
  ["/settings", "settings", /^\/settings/],
];
const ADMIN = ["/admin", "admin", /^\/admin/];
const ON_A_PHONE = 4;

/** Places that this user may go to. */
export const placesOf = (user) => (user?.isAdmin ? [...NAV, ADMIN] : NAV);

const THEMES = ["auto", "dark", "light"];
export const theme = signal(device.getItem("theme") || "auto");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  device.setItem("theme", theme.value);
});

/** The server's version in words, "" until it is known: a server that is back may be another one. */
export const version = signal("");
effect(() => {
  if (["live", "polling"].includes(link.value)) versionOfServer().then((known) => (version.value = t("version", { known })), () => {});
});

export function Shell({ here, children }) {
  // Not after the first picture, as an effect would: a key that is pressed as soon as one sees the page is heard.
  useEffect(() => void (device.getItem("notify") && import("../notify.js").catch(() => {})), []);
  useLayoutEffect(() => {
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  }, []);
  return html`<div class="shell">
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>${t("skip")}</a>
    <nav class="side" aria-label=${t("nav.main")}><a class="brand" href="#/"><${Logo} /><span>Bidkeeper</span></a>
      <ul>${placesOf(me.value).map(([path, name, mine], i) => html`<li key=${name} class=${i >= ON_A_PHONE ? "wide-only" : ""}><${Place} path=${path} name=${name} isHere=${mine.test(here)} /></li>`)}
        <li class="phone-only"><${Place} path="/more" name="more" isHere=${here === "/more" || placesOf(me.value).slice(ON_A_PHONE).some(([, , mine]) => mine.test(here))} /></li></ul>
      <div class="foot"><${Link} /><p class="version">${version.value}</p></div></nav>
    <header class="top"><a class="brand small" href="#/" aria-label=${t("nav.overview")}><${Logo} /></a><${Brake} /><span class="grow" />
      <span class="phone-only"><${Link} /></span>
      <${UnitSwitch} label=${t("unit.switch", { name: unitName() })} />
      <button class="chip wide-only" aria-label=${t("theme.switch", { name: t(`theme.${theme.value}`) })}
        onClick=${() => (theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % 3])}>${t(`theme.${theme.value}`)}</button>
      <a class="chip wide-only account" href="#/settings" title=${me.value?.address} >${me.value?.displayName || short(me.value?.address, 6, 4)}</a></header>
    ${link.value === "offline" && html`<div class="banner" role="alert">${heard.value ? t("offline", { at: clock(heard.value, now.value), age: span(now.value - heard.value) }) : t("offline.first")}</div>`}
    <main id="main" tabindex="-1" class=${link.value === "offline" ? "is-old" : ""}>${children}</main>
    ${opened.value && help.value && html`<${help.value} />`}</div>`;
}

// Who uses no keys needs no help with them.
const help = signal(null);
effect(() => {
  if (opened.value && !help.peek()) import("./help.js").then((module) => (help.value = module.HelpAndSearch), () => (opened.value = null));
});

const Place = ({ path, name, isHere }) => html`<a href=${`#${path}`} class=${isHere ? "here" : ""} aria-current=${isHere ? "page" : undefined}>
  <${Icon} name=${name} /><span>${t(`nav.${name}`)}</span></a>`;

const Link = () => html`<span class=${`connection ${link.value}`}><i aria-hidden="true" />${t(`link.${link.value}`)}</span>`;
