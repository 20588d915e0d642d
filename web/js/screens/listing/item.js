// What is for sale: its picture, where it is from and where it lies.
import { html } from "../../html.js";
import { clock, iso, secondsOf } from "../../format.js";
import { nameOf, readItem, readPicture } from "../../items.js";
import { useLoad } from "../../load.js";
import { now } from "../../store.js";
import { t } from "../../texts.js";
import { Copyable } from "../../parts/copy.js";
import { Picture } from "../../parts/picture.js";

export function Item({ task, known }) {
  const { inscriptionId, collectionId, listing } = task;
  // Traits are worth one look-up; what is shown without them is enough.
  const detail = useLoad((abort) => readItem(inscriptionId, abort), [inscriptionId]).value;
  const name = nameOf(inscriptionId);
  return html`<section class="panel listing-item" aria-label=${t("listing.item")}>
    <${Picture} of=${inscriptionId} letter=${name.slice(0, 1).toUpperCase()} words=${t("listing.picture", { name })} read=${readPicture(inscriptionId)} />
    <dl class="facts"><dt>${t("listing.fact.collection")}</dt><dd><bdi>${known?.collectionName || detail?.collectionName || collectionId || t("listing.unknown")}</bdi></dd>
      <dt>${t("listing.fact.id")}</dt><dd><${Copyable} text=${inscriptionId} head=${6} tail=${5} name=${t("listing.fact.id")} /></dd>
      ${listing && html`<dt>${t("listing.fact.output")}</dt><dd><${Copyable} text=${listing.outpoint} head=${6} tail=${5} name=${t("listing.fact.output")} /></dd>`}
      ${listing?.listedAt && html`<dt>${t("listing.fact.listed")}</dt><dd><time datetime=${listing.listedAt} title=${iso(secondsOf(listing.listedAt))}>${clock(secondsOf(listing.listedAt), now.value)}</time></dd>`}
      ${(detail?.traits || []).slice(0, 12).map(({ type, value }) => html`<dt key=${type}><bdi>${type}</bdi></dt><dd><bdi>${value}</bdi></dd>`)}</dl></section>`;
}
