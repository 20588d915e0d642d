// An item of one's own is put on the market: first which, then at what price.
import { useEffect } from "preact/hooks";
import { html } from "../html.js";
import { items, itemOf, readItems } from "../items.js";
import { useLoad } from "../load.js";
import { inscriptionIn } from "../pasted.js";
import { listings, quietly, readListings, readVenues, readWallet, venues, wallet } from "../store.js";
import { t } from "../texts.js";
import "../texts/list_item.js";
import { Icon } from "../parts/icon.js";
import { Refused, Skeleton } from "../parts/states.js";
import { Grid } from "./list/grid.js";
import { Offer } from "./list/offer.js";

export default function ListItem({ query }) {
  const { collection = "" } = query;
  const inscription = inscriptionIn(query.inscription || "") || query.inscription || "";
  const load = useLoad((abort) => Promise.all([items.peek() || readItems({ abort }), wallet.peek() || readWallet(), listings.peek() || readListings()]));
  useEffect(() => void (venues.peek() || quietly(readVenues())), []);
  const isKnown = items.value && wallet.value && listings.value;
  return html`<div class="page"><header class="page-head"><a class="button list-back" href=${inscription ? "#/list" : "#/listings"} aria-label=${t(inscription ? "list.back.grid" : "list.back")}><${Icon} name="back" /></a>
      <h1>${t("list.title")}</h1></header>
    ${isKnown ? inscription
      ? html`<${Offer} key=${inscription} item=${itemOf(inscription) || { id: inscription, name: null, collectionId: collection || null, address: null }} />`
      : html`<${Grid} query=${query} />`
      : load.refusal ? html`<${Refused} refusal=${load.refusal} again=${load.again} />` : html`<${Skeleton} rows=${2} tall=${260} />`}</div>`;
}
