// The form: the few fields that matter, then the others in groups that are opened on demand.
import { useEffect, useState } from "preact/hooks";
import { html, t } from "../../page.js";
import { numberOf } from "../../amounts.js";
import { get, withQuery } from "../../api.js";
import { MAIN_GROUPS, MORE_GROUPS, choicesOf, fieldOf, groupOf, labelOf } from "../../config_shape.js";
import { amount, count, perToken, percent } from "../../format.js";
import { venues } from "../../store.js";
import { Range } from "../../parts/range.js";
import { Combobox } from "../../parts/combobox.js";
import { Thumb } from "../../parts/face.js";
import { Choice, PercentField, SatsField, Segments } from "../../parts/field.js";
import { Input, isShown } from "./inputs.js";
import { Presets } from "./draft.js";
import { valueWords } from "./words.js";

const ENDS = { percent: ["bidPercentLow", "bidPercentHigh"], fixed: ["bidFixedLow", "bidFixedHigh"] };

/** `reference` is the price of an item or token that the range hangs on, or null. */
function BidRange({ form, reference }) {
  const { values, set, faults, base } = form;
  const isFixed = values.bidMode === "fixed";
  const [low, high] = ENDS[values.bidMode];
  const isInSats = values.type === "rune" && values.quantityMode === "sats";
  const per = values.type === "rune" && !isInSats ? numberOf(values.quantity) || 1 : 1;
  const whole = reference === null || isInSats ? null : Number(reference) * per;
  const inWords = (value) => {
    if (numberOf(value) === null || whole === null) return isFixed ? "" : t("edit.range.share");
    return isFixed ? t("edit.range.of", { share: percent(value / whole) }) : t("edit.range.is", { amount: amount(Math.round(whole * value)) });
  };
  const most = isFixed ? Math.max(numberOf(values[high], 0), Math.round((whole || numberOf(values[high]) || 1) * 1.1)) : Math.max(1.1, numberOf(values[high], 0));
  const step = isFixed ? Math.max(1, 10 ** Math.floor(Math.log10(most / 200))) : 0.01;
  const Price = isFixed ? SatsField : PercentField;
  const field = (name, i) => html`<${Price} name=${name} label=${labelOf(name)} hint=${inWords(values[name])} fault=${faults[name]} value=${values[name]} onChange=${(value) => set({ [name]: value })}
    mark=${base && base[name] !== values[name] ? t("edit.was", { value: valueWords(name, base[name], base) }) : undefined} key=${name + i} />`;
  const round = (value) => (isFixed ? Math.round(value) : Math.round(value * 100) / 100);
  return html`<${Segments} label=${labelOf("bidMode")} value=${values.bidMode} options=${choicesOf("bidMode")}
      onChange=${(bidMode) => set(modeOf(bidMode, values, whole))} />
    <${Range} low=${numberOf(values[low], 0)} high=${numberOf(values[high], 0)} min=${0} max=${most} step=${step} names=${[labelOf(low), labelOf(high)]}
      say=${(value) => `${valueWords(low, value, values)} ${inWords(value)}`} onChange=${(from, to) => set({ [low]: round(from), [high]: round(to) })} />
    <div class="pair keep">${field(low, 0)}${field(high, 1)}</div>`;
}

/** The other way to say a range begins with the same prices, where the floor is known. */
function modeOf(bidMode, values, whole) {
  if (bidMode === values.bidMode || !whole) return { bidMode };
  const fixed = (part) => (numberOf(part) === null ? null : Math.round(whole * part));
  if (bidMode === "fixed") return { bidMode, bidLevels: null, quantityMode: "quantity", bidFixedLow: fixed(values.bidPercentLow), bidFixedHigh: fixed(values.bidPercentHigh) };
  const share = (sats) => (numberOf(sats) === null ? null : Math.max(0.01, Math.round((100 * sats) / whole) / 100));
  return { bidMode, bidLevels: null, bidPercentLow: share(values.bidFixedLow), bidPercentHigh: share(values.bidFixedHigh) };
}

const CALM_MS = 200;

/** What the server knows that fits what is typed; none where it cannot say. */
function useNames(typed, { type, venue }, isAsked) {
  const [names, setNames] = useState([]);
  useEffect(() => {
    if (!isAsked) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get(withQuery("/market/collections", { q: typed.trim(), type, venue }), { abort: abort.signal }).then(
        (found) => setNames(found.collections.map((each) => ({ ...each, key: each.slug, value: each.slug }))),
        () => {},
      );
    }, CALM_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [typed, type, venue, isAsked]);
  return names;
}

/** One of what may be meant. */
function Choosable({ slug, name, picture, type, floor, volumeSats, isOwn }) {
  const price = floor === null ? null : type === "rune" ? perToken(floor) : amount(floor);
  const facts = [isOwn && t("choice.own"), price && t("choice.floor", { floor: price }), volumeSats && t("choice.volume", { volume: amount(volumeSats) })].filter(Boolean);
  return html`<${Thumb} path=${picture} name=${name || slug} /><span class="choice-name"><b><bdi>${name || slug}</bdi></b>${name && html`<small><bdi>${slug}</bdi></small>`}</span>
    <small class="choice-facts">${facts.join(" · ")}</small>`;
}

const bare = (text) => text.toUpperCase().replace(/[•·.\s]/g, "");

export function Name({ form, market, isNew, twin }) {
  const { values, set, faults, base } = form;
  const [isWanted, setWanted] = useState(false);
  const names = useNames(values.slug, values, isWanted);
  /** A rune's blanks and bullets are free while it is typed: left, it gets those that it is known with. */
  const onAt = (isAt) => {
    form.setTyping(isAt ? "slug" : "");
    const known = !isAt && values.type === "rune" && names.find((each) => each.slug !== values.slug && bare(each.slug) === bare(values.slug));
    if (known) set({ slug: known.slug });
  };
  const taking = (venues.value || []).filter((each) => each.kinds.includes(values.type));
  const usual = taking.find((each) => each.isDefault) || taking[0];
  const floor = values.type === "rune" ? perToken(market.floor) : amount(market.floor);
  const said = market.floor !== null ? t("edit.slug.floor", { floor, listed: count(market.listed), isRune: values.type === "rune" }) : t("edit.slug.hint", values);
  return html`<${Segments} label=${labelOf("type")} value=${values.type} options=${choicesOf("type")} onChange=${(type) => set(ofKind(type, values, isNew))} />
    <${Combobox} name="slug" label=${valueWords("type", values.type, values)} hint=${said} fault=${faults.slug || faults.type} value=${values.slug} maxlength="200" required
      mark=${base && base.slug !== values.slug ? t("edit.was", { value: base.slug }) : undefined} isFocused=${isNew && !values.slug} onChange=${(slug) => set({ slug })}
      options=${names} draw=${(each) => html`<${Choosable} ...${each} />`} onAt=${onAt} wants=${setWanted} />
    ${twin !== null && html`<p class="note" role="alert"><span>${t("word.twin")} <a class="link" href=${`#/tasks/${twin}/edit`}>${t("edit.twin.do")}</a></span></p>`}
    ${isNew && taking.length > 1 && html`<${Choice} label=${labelOf("venue")} hint=${fieldOf("venue").hint} fault=${faults.venue} value=${values.venue || usual?.name}
      options=${taking.map((each) => [each.name, each.title])} onChange=${(venue) => set({ venue: venue === usual?.name && usual?.isDefault ? "" : venue })} />`}
    ${!isNew && html`<p class="quiet">${t("edit.venue.of", { venue: venues.value?.find((each) => each.name === values.venue)?.title || values.venue })}</p>`}`;
}

const SATS_PER_ORDER = 50_000;

/** A change of kind takes along what the other kind does not have. A new rune task begins with orders of a few sats. */
function ofKind(type, values, isNew) {
  if (type === values.type) return {};
  if (type !== "rune") return { type, quantityMode: "quantity", quantity: 1, useVwap: false, hardcapSats: isNew ? 0 : values.hardcapSats };
  const small = { quantityMode: "sats", satsPerOrder: SATS_PER_ORDER, hardcapSats: SATS_PER_ORDER };
  return { type, bidType: "collection", deliverTo: "ordinalsAddress", onFill: null, ...(isNew && values.bidMode === "percent" ? small : {}) };
}

const ONE_COLUMN = new Set(["check", "levels", "between", "drop", "hours", "onFill", "lines"]);

export function Form({ form, draft, market, plan, twin, isNew, between, children }) {
  // Enter within a field starts nothing: real bids are placed by a button alone.
  return html`<form class="panel edit-form" onSubmit=${(event) => event.preventDefault()} novalidate aria-label=${t("edit.form")}>
    ${draft.isRestored && html`<div class="note" role="status"><p>${t("edit.restored")}</p><button type="button" class="button" onClick=${draft.restart}>${t("edit.restart")}</button></div>`}
    ${isNew && html`<${Presets} values=${form.values} set=${form.set} />`}
    <fieldset><legend>${t("edit.what")}</legend><${Name} form=${form} market=${market} isNew=${isNew} twin=${twin} /></fieldset>
    <fieldset><legend>${t("edit.range")}</legend><${BidRange} form=${form} reference=${plan.plan?.reference ?? market.floor} />
      <div class="fields">${drawn(MAIN_GROUPS, form).map((field) => html`<${Cell} key=${field.name} field=${field} form=${form} />`)}</div></fieldset>
    ${between}
    <div class="groups">${MORE_GROUPS.map((group) => html`<${Group} key=${group} group=${group} form=${form} />`)}</div>
    ${form.faults[""] && html`<p class="note bad" role="alert">${form.faults[""]}</p>`}
    ${children}</form>`;
}

/** The fields of these groups that are drawn: those that take half a row first, so that no row has a hole. */
const drawn = (groups, form) => {
  const fields = groups.flatMap((group) => groupOf(group)).filter((field) => isShown(field, form));
  return [false, true].flatMap((isWhole) => fields.filter((field) => ONE_COLUMN.has(field.kind) === isWhole));
};

const Cell = ({ field, form }) => html`<div class=${ONE_COLUMN.has(field.kind) ? "whole" : ""}><${Input} field=${field} form=${form} /></div>`;

const isSet = (name, values) => JSON.stringify(values[name]) !== JSON.stringify(fieldOf(name).default);

/** Opens by itself where something in it is wrong, and stays open when that is mended. */
function Group({ group, form }) {
  const fields = drawn([group], form);
  const names = fields.map((field) => field.name);
  const faulty = names.filter((name) => form.faults[name]).length;
  const given = names.filter((name) => isSet(name, form.values)).length;
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    if (faulty) setOpen(true);
  }, [faulty > 0]);
  if (!fields.length) return null;
  return html`<details class=${faulty ? "faulty" : ""} open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}><summary><span>${t(`edit.group.${group}`)}</span>
      <small>${faulty ? t("edit.group.faulty", { count: faulty }) : given ? t("edit.group.given", { count: given }) : t(`edit.group.${group}.hint`)}</small></summary>
    <fieldset><legend class="sr">${t(`edit.group.${group}`)}</legend><div class="fields">${fields.map((field) => html`<${Cell} key=${field.name} field=${field} form=${form} />`)}</div></fieldset></details>`;
}
