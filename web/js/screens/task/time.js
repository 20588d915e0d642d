// A task's past as a chart: its range stands in the address, and pointing at it chooses the moment of the whole screen.
import { useState } from "preact/hooks";
import { html } from "../../html.js";
import { clock } from "../../format.js";
import { setQuery } from "../../router.js";
import { now } from "../../store.js";
import { t } from "../../texts.js";
import { RANGES } from "../../timeline_shape.js";
import { Segments } from "../../parts/field.js";
import { priceWriter } from "../../parts/ladder.js";
import { Empty, Refused, Skeleton } from "../../parts/states.js";
import { Timeline } from "../../parts/timeline.js";
import { NumbersSwitch, TimeNumbers } from "./numbers.js";
import { useTimeline } from "./past.js";

const TALL = 290;

export function Past({ task, query, mark, onPoint, onPick }) {
  const range = query.range in RANGES ? query.range : "1h";
  const [hasNumbers, setNumbers] = useState(false);
  const { load, data } = useTimeline(task, range, now);
  const show = priceWriter(task.type === "rune");
  return html`<section class="panel span" aria-labelledby="time-title">
    <header class="panel-head"><h2 id="time-title">${t("time.title")}</h2>
      <div class="panel-acts">${!hasNumbers && html`<${Legend} hasLives=${data?.hasLives} />`}
        <${Segments} label=${t("time.range")} value=${range} options=${Object.keys(RANGES).map((each) => [each, t(`time.${each}`)])} onChange=${(value) => setQuery({ range: value === "1h" ? "" : value })} />
        <${NumbersSwitch} isOn=${hasNumbers} onChange=${setNumbers} /></div></header>
    ${load.refusal && html`<div class="panel-body"><${Refused} refusal=${load.refusal} again=${load.again} /></div>`}
    ${!data ? !load.refusal && html`<div class="panel-body"><${Skeleton} rows=${1} tall=${TALL} /></div>`
      : hasNumbers ? html`<${TimeNumbers} columns=${data.columns} isRune=${task.type === "rune"} onPick=${onPick} />`
      : !hasPrices(data) ? html`<${Empty}>${t("time.empty")}</${Empty}>`
      : html`<div class="panel-chart"><${Timeline} data=${data} mark=${mark} show=${show} height=${TALL} label=${sentenceOf(task, data, show)} onPoint=${onPoint} onPick=${onPick} /></div>
        <p class="hint">${t("time.hint")}</p>`}
  </section>`;
}

const hasPrices = ({ columns, lives }) => lives.length > 0 || columns.floor.some((each) => each !== null) || columns.reference.some((each) => each !== null);

const Legend = ({ hasLives }) => html`<span class="legend"><span><i class="k-floor" />${t("legend.floor")}</span><span><i class="k-reference" />${t("legend.reference")}</span>
  <span><i class="k-own" />${t("legend.lives")}</span>${hasLives && html`<span><i class="k-band" />${t("legend.range")}</span>`}<span><i class="k-star">★</i>${t("legend.filled")}</span></span>`;

function sentenceOf(task, { columns, lives, from }, show) {
  const floors = columns.floor.filter((each) => each !== null);
  const [low, high] = floors.length ? [floors.reduce((a, b) => Math.min(a, b)), floors.reduce((a, b) => Math.max(a, b))] : [null, null];
  return t("time.sentence", {
    name: task.slug, from: clock(from), floor: show(floors.at(-1)), low: show(low), high: show(high),
    open: lives.filter((life) => life.isOpen).length, filled: lives.filter((life) => life.isFilled).length,
  });
}
