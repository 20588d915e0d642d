// Four numbers: what is at stake, what it could become, what stands, and what backs it.
import { useEffect } from "preact/hooks";
import { computed } from "@preact/signals";
import { html } from "../../html.js";
import { NONE, amount, count, percent, unitName } from "../../format.js";
import { standingOf } from "../../standing.js";
import { bookOf, feed, fillsToday, me, momentOf, now, quietly, readFillsToday, tasks, wallet } from "../../store.js";
import { t } from "../../texts.js";
import { Money } from "../../parts/money.js";

/** {known, first}: real tasks whose best bid's place is known, and those where it is the first. */
const places = computed(() => {
  const real = (tasks.value || []).filter((task) => task.isRunning && !task.config.dryRun);
  const found = real.map((task) => standingOf(task, momentOf(task.id).value, bookOf(task.id).value, now.peek())?.place).filter((place) => place);
  return { known: found.length, first: found.filter((place) => place === 1).length };
});

const lastFill = computed(() => feed.value.find((each) => each.event === "fill")?.id || 0);

function Number({ label, value, children }) {
  return html`<div class="number"><span class="label">${label}</span><b class="num">${value}</b>${children}</div>`;
}

/** `isMissing`: no wallet was read yet, or the marketplace tells no balance. */
const Sum = ({ value }) => (value === null || value === undefined ? html`<span class="dim">${NONE}</span>` : html`<${Money} value=${value} /> <u>${unitName()}</u>`);

export function Numbers() {
  const stats = me.value?.stats;
  const purse = wallet.value;
  const balance = purse?.biddingWallet?.balanceSats;
  useEffect(() => quietly(readFillsToday()), [lastFill.value]);
  return html`<section class="numbers" aria-label=${t("overview.numbers")}>
    <${Number} label=${t("overview.exposure")} value=${html`<${Sum} value=${stats?.exposure} />`}>${stats && html`<${Limit} stats=${stats} />`}</${Number}>
    <${Number} label=${t("overview.all")} value=${html`<${Sum} value=${purse?.ifAllFillNow} />`}>
      <small>${purse && (purse.worstLoss === null ? t("overview.all.unknown") : t("overview.all.ever", { sum: amount(purse.worstLoss) }))}</small></${Number}>
    <${Number} label=${t("overview.open")} value=${html`${stats ? count(stats.openBids) : NONE}<span class="dim"> / ${wanted.value}</span>`}><small>${openWords()}</small></${Number}>
    <${Number} label=${t("overview.balance")} value=${html`<${Sum} value=${balance} />`}>
      <small class=${purse?.balanceError || balance === 0 ? "held-text" : ""}>${purse && balanceWords(purse, balance)}</small></${Number}></section>`;
}

const wanted = computed(() => (tasks.value || []).filter((task) => task.isRunning && !task.config.dryRun).reduce((sum, task) => sum + task.config.bidCount, 0));

function openWords() {
  const { known, first } = places.value;
  const said = known ? [t("overview.open.first", { first, known })] : [];
  if (fillsToday.value) said.push(t("overview.open.fills", { count: fillsToday.value.length }));
  return said.join(" · ");
}

function balanceWords(purse, balance) {
  if (purse.balanceError) return t("overview.balance.unknown");
  return t(balance ? "overview.balance.where" : "overview.balance.none");
}

function Limit({ stats }) {
  const share = stats.maxExposure ? stats.exposure / stats.maxExposure : 0;
  return html`<span class="bar" role="meter" aria-valuenow=${Math.round(100 * share)} aria-valuemin="0" aria-valuemax="100" aria-label=${t("overview.exposure.bar")}>
    <i class=${share > 0.9 ? "hot" : ""} style=${{ width: `${Math.min(100, 100 * share)}%` }} /></span>
    <small>${t("overview.exposure.of", { share: percent(share), most: amount(stats.maxExposure) })}</small>`;
}
