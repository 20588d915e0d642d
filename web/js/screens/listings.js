// All that is for sale, or was: where its price stands, and what is the least that anybody can buy it for.
import { computed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { html } from "../html.js";
import { unitName } from "../format.js";
import { items, nameOf, readItems } from "../items.js";
import { isCheaper, standOf } from "../listing_state.js";
import { useLoad } from "../load.js";
import { setQuery } from "../router.js";
import { listingIds, listings, quietly, readListings } from "../store.js";
import { t } from "../texts.js";
import "../texts/listings.js";
import { Segments } from "../parts/field.js";
import { Icon } from "../parts/icon.js";
import { Money } from "../parts/money.js";
import { Empty, Refused, Skeleton } from "../parts/states.js";
import { ListingRow } from "./listings/row.js";

const SHOWN = ["", "sale", "sold", "look"];
const plain = (text) => text.toLowerCase().replace(/[\s_-]/g, "");
const allTags = computed(() => [...new Set((listings.value || []).flatMap((task) => task.tags))].sort());

/** Tasks that fit the query {q, show, tag}: what needs a look first, then the newest. */
function found({ q = "", show = "", tag = "" }) {
  const words = plain(q);
  const fits = (task) =>
    (!words || plain([nameOf(task.inscriptionId), task.inscriptionId, task.collectionId, ...task.tags].join(" ")).includes(words)) &&
    (!show || (show === "look" ? Boolean(task.lastError) : standOf(task) === show)) &&
    (!tag || task.tags.includes(tag));
  return listings.value.filter(fits).sort((a, b) => Number(Boolean(b.lastError)) - Number(Boolean(a.lastError)) || b.id - a.id);
}

export default function Listings({ query }) {
  const load = useLoad(() => (listingIds.peek() ? Promise.resolve() : readListings()));
  useEffect(() => void (items.peek() || quietly(readItems())), []);
  const ids = listingIds.value;
  return html`<div class="page"><header class="page-head"><h1>${t("listings.title")}${ids && html`<span class="count">${ids.length}</span>`}</h1>
      <div class="acts"><a class="button primary" href="#/list"><${Icon} name="plus" />${t("listings.add")}</a></div></header>
    ${ids ? html`<${All} query=${query} />` : load.refusal ? html`<${Refused} refusal=${load.refusal} again=${load.again} />` : html`<${Skeleton} rows=${4} tall=${96} />`}</div>`;
}

function All({ query }) {
  if (!listings.value.length) {
    return html`<section class="panel"><${Empty} title=${t("listings.none")} action=${html`<a class="button" href="#/list">${t("listings.add")}</a>`}>${t("listings.none.what")}</${Empty}></section>`;
  }
  const shown = found(query);
  return html`<${Sums} />
    <div class="listings-choice" role="search"><label class="field"><span>${t("listings.find")}</span><input type="search" autocomplete="off" spellcheck="false" value=${query.q || ""}
        onInput=${(event) => setQuery({ q: event.target.value })} /></label>
      <${Segments} label=${t("listings.show")} value=${query.show || ""} options=${SHOWN.map((each) => [each, t(`listings.show.${each}`)])} onChange=${(show) => setQuery({ show })} />
      ${allTags.value.length > 0 && html`<label class="field"><span>${t("listings.tag")}</span><select value=${query.tag || ""} onChange=${(event) => setQuery({ tag: event.target.value })}>
        <option value="">${t("listings.tag.any")}</option>${allTags.value.map((tag) => html`<option key=${tag} value=${tag} selected=${tag === query.tag}>${tag}</option>`)}</select></label>`}</div>
    <section class="panel" aria-label=${t("listings.title")}>${shown.length
      ? html`<header class="panel-head listings-head"><p class="quiet">${t("listings.lowest.what")}</p><u>${unitName()}</u></header>
        <ul>${shown.map(({ id }) => html`<${ListingRow} key=${id} id=${id} />`)}</ul>`
      : html`<${Empty} action=${html`<button class="button" onClick=${() => setQuery({ q: "", show: "", tag: "" })}>${t("listings.nothing.do")}</button>`}>${t("listings.nothing")}</${Empty}>`}</section>`;
}

/** What is asked for all that is on the market, what came of the sold ones, and how many can be had for less. */
function Sums() {
  const real = listings.value.filter((task) => !task.config.dryRun);
  const of = (stand) => real.filter((task) => standOf(task) === stand);
  const [sale, sold] = [of("sale"), of("sold")];
  const cheaper = real.filter(isCheaper);
  const sum = (list, read) => list.reduce((total, each) => total + (read(each.listing) || 0), 0);
  return html`<section class="numbers listings-numbers" aria-label=${t("listings.sums")}>
    <div class="number"><span class="label">${t("listings.sale")}</span><b><${Money} value=${sum(sale, (each) => each.price)} named /></b><small>${t("listings.sale.what", { count: sale.length })}</small></div>
    <div class="number"><span class="label">${t("listings.sold")}</span><b><${Money} value=${sum(sold, (each) => each.proceeds ?? each.price)} named /></b><small>${t("listings.sold.what", { count: sold.length })}</small></div>
    <div class="number"><span class="label">${t("listings.cheaper")}</span><b>${cheaper.length}</b><small>${t("listings.cheaper.what", { count: cheaper.length })}</small></div></section>`;
}
