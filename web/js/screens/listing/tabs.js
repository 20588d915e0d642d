// A listing's settings in words, and the end of its log.
import { useEffect, useRef } from "preact/hooks";
import { html } from "../../html.js";
import { get } from "../../api.js";
import { useLoad } from "../../load.js";
import { setQuery } from "../../router.js";
import { t } from "../../texts.js";
import { Segments } from "../../parts/field.js";
import { Empty, Loaded } from "../../parts/states.js";
import { settingsOf } from "./words.js";

const LINES = 200;
const TABS = { settings: Settings, log: Log };

export function Tabs({ task, query }) {
  const tab = query.tab in TABS ? query.tab : "settings";
  return html`<section class="panel" aria-label=${t("listing.tabs")}><header class="panel-head"><${Segments} label=${t("listing.tabs")} value=${tab}
      options=${Object.keys(TABS).map((each) => [each, t(`listing.tab.${each}`)])} onChange=${(value) => setQuery({ tab: value === "settings" ? "" : value })} /></header>
    <${TABS[tab]} key=${tab} task=${task} /></section>`;
}

function Settings({ task }) {
  return html`<dl class="facts panel-body">${settingsOf(task).map(([name, words]) => html`<dt key=${name}>${t(`listing.set.${name}`)}</dt><dd><bdi>${words}</bdi></dd>`)}</dl>`;
}

function Log({ task }) {
  // A cycle writes lines: they are read again after each.
  const load = useLoad((abort) => get(`/autolist/${task.id}/log?lines=${LINES}`, { abort }).then((answer) => answer.lines), [task.id, task.lastCycle?.time], task.id);
  return html`<${Loaded} from=${load} rows=${1} tall=${200}>${(lines) => (lines.length ? html`<${Lines} lines=${lines} />` : html`<${Empty}>${t("listing.log.none")}</${Empty}>`)}</${Loaded}>`;
}

/** Lines with their end in sight. */
function Lines({ lines }) {
  const box = useRef(null);
  useEffect(() => void (box.current.scrollTop = box.current.scrollHeight), [lines]);
  return html`<pre class="listing-log" tabindex="0" role="region" aria-label=${t("listing.tab.log")} ref=${box}>${lines.join("\n")}</pre>`;
}
