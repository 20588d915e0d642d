// What is bid on, and where.
import { useEffect, useId, useState } from "preact/hooks";
import { html } from "../../html.js";
import { get, withQuery } from "../../api.js";
import { choicesOf, fieldOf, labelOf } from "../../config_shape.js";
import { amount, count, perToken } from "../../format.js";
import { Choice, Segments, TextField } from "../../parts/field.js";
import { venues } from "../../store.js";
import { t } from "../../texts.js";
import { valueWords } from "./words.js";

const CALM_MS = 200;

/** Names that the server knows and that fit what is typed: [{slug, name}]; none where it cannot say. */
function useNames(typed, type, isAsked) {
  const [names, setNames] = useState([]);
  useEffect(() => {
    if (!isAsked || !typed.trim()) return setNames([]);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      get(withQuery("/tasks/slugs", { q: typed.trim(), type }), { abort: abort.signal }).then(
        (found) => setNames(found.slugs || []),
        () => {},
      );
    }, CALM_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [typed, type, isAsked]);
  return names;
}

export function Name({ form, market, isNew, twin }) {
  const { values, set, faults, base } = form;
  const list = useId();
  const [isTyped, setTyped] = useState(false);
  const names = useNames(values.slug, values.type, isTyped);
  const taking = (venues.value || []).filter((each) => each.kinds.includes(values.type));
  const usual = taking.find((each) => each.isDefault) || taking[0];
  const floor = values.type === "rune" ? perToken(market.floor) : amount(market.floor);
  const said = market.floor !== null ? t("edit.slug.floor", { floor, listed: count(market.listed), isRune: values.type === "rune" }) : t("edit.slug.hint", values);
  return html`<${Segments} label=${labelOf("type")} value=${values.type} options=${choicesOf("type")} onChange=${(type) => set(ofKind(type, values, isNew))} />
    <${TextField} name="slug" label=${valueWords("type", values.type, values)} hint=${said} fault=${faults.slug || faults.type} value=${values.slug} list=${list} maxlength="200" required
      mark=${base && base.slug !== values.slug ? t("edit.was", { value: base.slug }) : undefined} autofocus=${isNew} onChange=${(slug) => (setTyped(true), set({ slug }))} />
    <datalist id=${list}>${names.map((each) => html`<option key=${each.slug} value=${each.slug}>${each.name || each.slug}</option>`)}</datalist>
    ${twin !== null && html`<p class="note" role="alert"><span>${t("edit.twin")} <a class="link" href=${`#/tasks/${twin}/edit`}>${t("edit.twin.do")}</a></span></p>`}
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
