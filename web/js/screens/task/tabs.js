// What else there is to see of a task: its bids and fills, another config on its past, its log, its settings.
import { html } from "../../html.js";
import { useEffect, useState } from "preact/hooks";
import { setQuery } from "../../router.js";
import { t } from "../../texts.js";
import "../../texts/task_tabs.js";
import { Segments } from "../../parts/field.js";
import { Skeleton } from "../../parts/states.js";
import { Bids } from "./bids.js";
import { Log } from "./log.js";
import { Settings } from "./settings.js";

const TABS = { bids: Bids, whatif: WhatIf, log: Log, settings: Settings };

export function Tabs({ task, query, moment, isPast }) {
  const tab = query.tab in TABS ? query.tab : "bids";
  return html`<section class="panel" aria-label=${t("tab.list")}><header class="panel-head"><${Segments} label=${t("tab.list")} value=${tab}
      options=${Object.keys(TABS).map((each) => [each, t(`tab.${each}`)])} onChange=${(value) => setQuery({ tab: value === "bids" ? "" : value })} /></header>
    <${TABS[tab]} key=${tab} task=${task} moment=${moment} isPast=${isPast} /></section>`;
}

/** Who does not ask what would have been needs none of it. */
function WhatIf(props) {
  const [Found, setFound] = useState(null);
  useEffect(() => void import("./whatif.js").then((module) => setFound(() => module.WhatIf), () => {}), []);
  return Found ? html`<${Found} ...${props} />` : html`<div class="panel-body"><${Skeleton} rows=${1} tall=${260} /></div>`;
}
