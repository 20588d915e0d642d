// How the page looks, who may come in, what bounds all tasks, and where one is told of what happens.
import { useEffect, useState } from "preact/hooks";
import { html, t } from "../page.js";
import { reloadOnceThere } from "../api.js";
import { setQuery } from "../router.js";
import "../texts/settings.js";
import { Segments } from "../parts/field.js";
import { Refused, Skeleton } from "../parts/states.js";

const TABS = {
  look: () => import("../parts/settings_look.js"),
  access: () => import("../parts/settings_access.js"),
  limits: () => import("../parts/settings_limits.js"),
  hooks: () => import("../parts/settings_hooks.js"),
  presets: () => import("../parts/settings_presets.js"),
};

export default function Settings({ query }) {
  const name = TABS[query.tab] ? query.tab : "look";
  return html`<div class="page"><h1>${t("settings.title")}</h1>
    <${Segments} label=${t("settings.title")} value=${name} onChange=${(value) => setQuery({ tab: value })} options=${Object.keys(TABS).map((each) => [each, t(`settings.tab.${each}`)])} />
    <${Tab} key=${name} name=${name} /></div>`;
}

function Tab({ name }) {
  const [found, setFound] = useState(null);
  const [refusal, setRefusal] = useState(null);
  const load = () => TABS[name]().then((module) => setFound(() => module.default), () => setRefusal({ status: 0, details: [] }));
  useEffect(() => void load(), []);
  if (refusal) return html`<${Refused} refusal=${refusal} again=${() => reloadOnceThere(true).catch(() => {})} />`;
  return found ? html`<${found} />` : html`<${Skeleton} rows=${3} tall=${90} />`;
}
