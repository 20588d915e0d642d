// What was bought, sold and gained, and every bid there was. What is chosen stands in the address.
import { useMemo } from "preact/hooks";
import { html } from "../html.js";
import { get, withQuery } from "../api.js";
import { useAct, useLoad } from "../load.js";
import { setQuery } from "../router.js";
import { t } from "../texts.js";
import "../texts/history.js";
import { Choice, Segments } from "../parts/field.js";
import { Orders, Trades } from "../parts/trades.js";
import { Profit } from "../parts/profit.js";
import { Loaded, wordsOf } from "../parts/states.js";
import { toast } from "../parts/toast.js";

const DAY_S = 86_400;

const beginOf = (days) => (Number(days) > 0 ? new Date(Math.floor(Date.now() / 1000 - Number(days) * DAY_S) * 1000).toISOString().replace(".000", "") : "");

export default function History({ query }) {
  const { by = "slug", days = "", method = "fifo" } = query;
  const tab = query.tab === "orders" ? "orders" : "trades";
  const from = useMemo(() => beginOf(days), [days]); // of when it was chosen: pages of one list begin at one moment
  return html`<div class="page"><header class="page-head"><h1>${t("history.title")}</h1>
      <div class="acts"><${Files} from=${from} method=${method} /></div></header>
    <div class="history-choice"><${Segments} label=${t("history.when")} value=${days} onChange=${(value) => setQuery({ days: value })}
        options=${["", "7", "30", "365"].map((each) => [each, t(`history.when.${each}`)])} />
      <${Segments} label=${t("history.by")} value=${by} onChange=${(value) => setQuery({ by: value })}
        options=${["slug", "task", "month", "none"].map((each) => [each, t(`history.by.${each}`)])} />
      <${Choice} label=${t("history.method")} value=${method} onChange=${(value) => setQuery({ method: value })}
        options=${["fifo", "average"].map((each) => [each, t(`history.method.${each}`)])} /></div>
    <${Sums} key=${`${by} ${days} ${method}`} by=${by} method=${method} from=${from} />
    <div class="panel"><header class="panel-head">
      <${Segments} label=${t("history.title")} value=${tab} onChange=${(value) => setQuery({ tab: value })}
        options=${["trades", "orders"].map((each) => [each, t(`history.${each}`)])} /></header>
      ${tab === "orders" ? html`<${Orders} key="orders" />` : html`<${Trades} from=${from} side=${query.side || ""} slug=${query.slug || ""} />`}</div></div>`;
}

/** The profit of one choice; another choice is another one of these, so that no figure stands under what it is not of. */
function Sums({ by, method, from }) {
  const sums = useLoad(async (abort) => {
    const [all, rows] = await Promise.all(["none", by].map((groupBy) => get(withQuery("/pnl", { groupBy, method, from }), { abort })));
    return { all: all.rows[0], rows: by === "none" ? [] : rows.rows };
  });
  return html`<${Loaded} from=${sums} rows=${2} tall=${110}>${(found) => html`<${Profit} all=${found.all} rows=${found.rows} by=${by} />`}</${Loaded}>`;
}

function Files({ from, method }) {
  const { isBusy, run } = useAct();
  const save = (format) => run(async () => {
    try {
      const file = await get(withQuery("/trades.csv", { format, from, method }));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(file);
      link.download = `bidkeeper-${format}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    } catch (refusal) {
      toast(wordsOf(refusal, { isRead: true }), { isBad: true });
    }
  });
  return ["plain", "koinly", "cointracking"].map((format) => html`<button key=${format} class="button" disabled=${isBusy} onClick=${() => save(format)}>${t(`history.file.${format}`)}</button>`);
}
