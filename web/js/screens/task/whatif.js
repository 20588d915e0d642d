// Another config on the task's own recorded past, beside the one it has: what would have been filled, at what price.
import { useEffect, useRef, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { hasUnread } from "../../amounts.js";
import { call } from "../../api.js";
import { Empty, Loaded, Refused, Skeleton, useLoad } from "../../parts/states.js";
import { fieldOf, labelOf, matters, readShapes } from "../../config_shape.js";
import { clock, count, money, percent, perToken, secondsOf, unitName } from "../../format.js";
import { go } from "../../router.js";
import { reasonOf } from "../../texts/reasons.js";
import { Check, SatsField } from "../../parts/field.js";

/** [field, least, most, step, how it is written]: what can be slid, over the part of its range that is used. */
const SLIDERS = [
  ["bidPercentHigh", 0.1, 1, 0.01, percent], ["bidPercentLow", 0.05, 1, 0.01, percent],
  ["bidCount", 1, 20, 1, count], ["bidExpiryMinutes", 15, 240, 5, count], ["updateTolerance", 0.005, 0.2, 0.005, percent],
];
const PRICES = ["bidFixedHigh", "bidFixedLow", "hardcapSats"];
const OF_RANGE = new Set(["bidPercentHigh", "bidPercentLow", "bidFixedHigh", "bidFixedLow"]);

const REST_MS = 350;

/** Levels of one's own stand in place of the range. */
const counts = (name, config) => matters(fieldOf(name), config) && !(config.bidLevels && OF_RANGE.has(name));

export function WhatIf({ task }) {
  const shapes = useLoad(readShapes);
  return shapes.value ? html`<${Trial} task=${task} />` : html`<div class="panel-body"><${Loaded} from=${shapes} rows=${1} tall=${320} /></div>`;
}

function Trial({ task }) {
  const { config } = task;
  const [changes, setChanges] = useState({});
  const [found, setFound] = useState(null);
  const [refusal, setRefusal] = useState(null);
  const [turn, setTurn] = useState(0);
  const [isBusy, setBusy] = useState(false);
  const set = (field) => (value) => setChanges((old) => (value === null || value === config[field] ? without(old, field) : { ...old, [field]: value }));
  const value = (field) => changes[field] ?? config[field];
  // One at a time, the newest wish last: a moment after the sliders rest.
  const under = useRef(Promise.resolve());
  useEffect(() => {
    let isOld = false;
    const timer = setTimeout(() => {
      if (hasUnread(changes)) return;
      under.current = under.current.then(async () => {
        if (isOld) return;
        setBusy(true);
        const [answer, told] = await call("POST", `/tasks/${task.id}/replay`, changes).then((found) => [found, null], (refused) => [null, refused]);
        setBusy(false);
        if (isOld) return;
        if (told?.status === 429) {
          // Another of one's own runs, in another tab perhaps: this one comes after it.
          setTimeout(() => isOld || setTurn((old) => old + 1), 1000 * (told.retryAfterS || 1));
          return;
        }
        setRefusal(told);
        if (answer) setFound(answer);
      });
    }, REST_MS);
    return () => (clearTimeout(timer), (isOld = true));
  }, [task.id, changes, turn]);
  const isNothing = Object.keys(changes).length === 0;
  const isFaulty = hasUnread(changes);
  return html`<div class="panel-body whatif"><form class="form" onSubmit=${(event) => event.preventDefault()}><p class="quiet">${t("whatif.what")}</p>
      ${SLIDERS.filter(([field]) => counts(field, config)).map(([field, min, max, step, write]) => html`<${Slider} key=${field} label=${named(field)} value=${value(field)} before=${config[field]} min=${min} max=${max} step=${step} write=${write} onChange=${set(field)} />`)}
      ${PRICES.filter((field) => counts(field, config)).map((field) => html`<${SatsField} key=${field} label=${labelOf(field)} value=${value(field)} onChange=${set(field)} />`)}
      <${Check} label=${labelOf("outbidEnabled")} value=${value("outbidEnabled")} onChange=${set("outbidEnabled")} />
      <div class="whatif-acts"><button class="button primary" type="button" disabled=${isNothing || isFaulty} onClick=${() => go(`/tasks/${task.id}/edit`, changes)}>${t("whatif.use")}</button>
        <button class="button" type="button" disabled=${isNothing} onClick=${() => setChanges({})}>${t("whatif.reset")}</button></div></form>
    <div class=${`whatif-result ${isBusy ? "is-reading" : ""}`} aria-busy=${isBusy}>${isBusy && html`<${Slow} />`}
      ${!found && !refusal && html`<${Skeleton} rows=${1} tall=${320} />`}
      ${refusal && (refusal.status === 409 ? html`<${Empty}>${t("whatif.none")}</${Empty}>` : html`<${Refused} refusal=${refusal} again=${() => setTurn(turn + 1)} />`)}
      ${found && !refusal && html`<${Result} found=${found} isRune=${task.type === "rune"} />`}</div></div>`;
}

/** A slider's name, with its unit. */
const named = (name) => (fieldOf(name).unit ? `${labelOf(name)}, ${fieldOf(name).unit}` : labelOf(name));

const without = (values, field) => Object.fromEntries(Object.entries(values).filter(([name]) => name !== field));

function Slider({ label, value, before, min, max, step, write, onChange }) {
  const shown = value ?? min;
  return html`<label class="field slider"><span>${label}<output>${value === null ? t("set.service") : write(shown)}${value !== before && before !== null && html` <span class="quiet">${t("set.today", { value: write(before) })}</span>`}</output></span>
    <input type="range" aria-label=${label} aria-valuetext=${write(shown)} min=${Math.min(min, shown)} max=${Math.max(max, shown)} step=${step} value=${shown} onInput=${(event) => onChange(Number(event.target.value))} /></label>`;
}

/** A word for what takes longer than two seconds. */
function Slow() {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 1500);
    return () => clearTimeout(timer);
  }, []);
  return isSlow ? html`<p class="quiet">${t("whatif.trying.slow")}</p>` : null;
}

function Result({ found, isRune }) {
  const price = (value) => (isRune ? perToken(value) : money(value));
  const rows = [
    ["fills", "fills", count], ["spent", "spentSats", money], ["average", "averagePrice", price], ["to_floor", "averagePriceToFloor", percent],
    ["later", "averagePriceToFloor24hLater", percent], ["first", "firstShare", percent], ["placed", "placed", count], ["cancelled", "cancelled", count],
  ];
  const gaps = new Map([...found.own.unknown, ...found.changed.unknown].map((gap) => [gap.what, gap]));
  return html`<p class="quiet">${t("whatif.over", { cycles: found.cycles, from: clock(secondsOf(found.from)), to: clock(secondsOf(found.to)) })} ${found.isCut && t("whatif.cut")} ${!found.changes.length && t("whatif.same")}</p>
    <table class="compare"><thead><tr><td /><th scope="col" class="number-cell">${t("whatif.own")}</th><th scope="col" class="number-cell">${t("whatif.changed")}</th></tr></thead>
      <tbody>${rows.map(([name, field, write]) => html`<${Row} key=${name} label=${t(`whatif.row.${name}`)} unit=${name === "spent" || (name === "average" && !isRune) ? unitName() : ""} pair=${[found.own, found.changed]} field=${field} write=${write} />`)}
        <tr><th scope="row">${t("whatif.row.calls")}</th>${[found.own, found.changed].map((each) => html`<td class="number-cell">${each.calls ? count(each.calls.total) : t("whatif.unknown")}</td>`)}</tr></tbody></table>
    <${Skipped} own=${found.own.skipped} changed=${found.changed.skipped} />
    ${gaps.size > 0 && html`<h3>${t("whatif.gaps")}</h3><ul class="why-more">${[...gaps.values()].map((gap) => html`<li key=${gap.what}>${t("whatif.gap", { what: t(`whatif.gap.${gap.what}`), missing: gap.missing, of: gap.of })}</li>`)}</ul>`}`;
}

function Row({ label, unit, pair, field, write }) {
  const most = Math.max(...pair.map((each) => each[field] || 0));
  return html`<tr><th scope="row">${label}${unit && html` <u>${unit}</u>`}</th>${pair.map((each, i) => {
    const value = each[field];
    const isPart = each.unknown.some((gap) => gap.fields.includes(field));
    const words = value === null ? t(isPart ? "whatif.unknown" : "word.none") : isPart ? t("whatif.at_least", { value: write(value) }) : write(value);
    return html`<td key=${i} class="number-cell"><span class=${value === null ? "quiet" : "num"}>${words}</span>${value > 0 && most > 0 && html`<i class=${`meter ${i ? "yours" : ""}`} style=${{ width: `${(100 * value) / most}%` }} aria-hidden="true" />`}</td>`;
  })}</tr>`;
}

function Skipped({ own, changed }) {
  const reasons = [...new Set([...own, ...changed].map((each) => each.reason))];
  const countOf = (list, reason) => list.find((each) => each.reason === reason)?.count || 0;
  if (!reasons.length) return html`<p class="quiet">${t("whatif.skipped.none")}</p>`;
  return html`<table class="compare"><thead><tr><th scope="col">${t("whatif.skipped")}</th><th scope="col" class="number-cell">${t("whatif.own")}</th><th scope="col" class="number-cell">${t("whatif.changed")}</th></tr></thead>
    <tbody>${reasons.map((reason) => html`<tr key=${reason}><th scope="row" title=${reasonOf(reason).why}>${reasonOf(reason).title}</th>${[own, changed].map((list) => html`<td class="number-cell">${count(countOf(list, reason))}</td>`)}</tr>`)}</tbody></table>`;
}
