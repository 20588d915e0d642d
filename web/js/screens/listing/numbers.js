// The four numbers of a listing: price, floor, what it is never below, and the cheapest signature; of a sold one what it brought.
import { html } from "../../html.js";
import { amount, percent } from "../../format.js";
import { floorOf, isCheaper, paperPriceOf, standOf } from "../../listing_state.js";
import { cyclesOf, wallet } from "../../store.js";
import { t } from "../../texts.js";
import { Money } from "../../parts/money.js";

const Number = ({ label, value, what, name = "" }) => html`<div class="number"><span class="label">${label}</span><b class=${name}>${value}</b>${what && html`<small>${what}</small>`}</div>`;

export function Numbers({ task, series }) {
  const stand = standOf(task);
  return stand === "sold" ? html`<${Sold} task=${task} />` : html`<${Asked} task=${task} stand=${stand} series=${series} />`;
}

function Asked({ task, stand, series }) {
  const { listing, config } = task;
  const floor = floorOf(cyclesOf(task.id).value);
  const least = series?.guard.at(-1) ?? (config.minPriceSats || null);
  const price = stand !== "none" ? listing.price : config.dryRun ? paperPriceOf(cyclesOf(task.id).value) : null;
  const isLower = isCheaper(task);
  return html`<section class="numbers listing-numbers" aria-label=${t("listing.numbers")}>
    <${Number} label=${t(stand === "off" ? "listing.last" : "listing.price")} value=${html`<${Money} value=${price} named=${price !== null} />`}
      what=${price === null ? t("listing.price.none") : stand === "off" ? t(`listing.closed.${listing.closeReason}`) : stand === "none" ? t("listing.price.paper") : ""} />
    <${Number} label=${t("listing.floor")} value=${html`<${Money} value=${floor} named=${floor > 0} />`}
      what=${floor > 0 && price !== null ? t("listing.floor.of", { share: percent(price / floor) }) : floor === null ? t("listing.floor.none") : ""} />
    <${Number} label=${t("listing.least")} value=${html`<${Money} value=${least} named=${least !== null} />`} what=${t(least === null ? "listing.least.none" : "listing.least.what")} />
    <${Number} label=${t("listing.lowest")} name=${isLower ? "listing-held" : ""} value=${html`<${Money} value=${listing?.lowestOutstanding} named=${listing?.lowestOutstanding != null} />`}
      what=${listing?.lowestOutstanding == null ? t("listing.lowest.none") : html`${t("listing.lowest.what")}${listing.lowestNote && html`<span class="listing-note">${listing.lowestNote}</span>`}`} /></section>`;
}

function Sold({ task: { listing, config, venue, collectionId } }) {
  const gain = config.costSats !== null && listing.proceeds !== null ? listing.proceeds - config.costSats : null;
  const backsBids = wallet.value?.funding.some((each) => each.venue === venue && each.from === "payment");
  return html`<section class="numbers listing-numbers" aria-label=${t("listing.numbers")}>
      <${Number} label=${t("listing.received")} name="listing-good" value=${html`★ <${Money} value=${listing.proceeds} named />`} what=${html`<a class="link" href=${`#/history?${new URLSearchParams({ side: "sell", ...(collectionId ? { slug: collectionId } : {}) })}`}>${t("listing.history")}</a>`} />
      <${Number} label=${t("listing.sold_at")} value=${html`<${Money} value=${listing.price} named />`} what=${listing.proceeds > listing.price ? t("listing.sold.more", { sats: amount(listing.proceeds - listing.price) }) : ""} />
      ${gain !== null && html`<${Number} label=${t("listing.gain")} name=${gain < 0 ? "listing-bad" : "listing-good"} value=${html`<${Money} value=${gain} named />`} what=${t("listing.gain.what", { cost: amount(config.costSats) })} />`}</section>
    <div class="note good"><p>${t(backsBids ? "listing.proceeds.back" : "listing.proceeds")} ${!backsBids && html`<a href="#/wallet">${t("listing.proceeds.do")}</a>`}</p></div>`;
}
