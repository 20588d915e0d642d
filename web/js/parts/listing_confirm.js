// The question before a listing is signed: at what price, what comes of it, and how long the signature is good.
import { amount } from "../format.js";
import { hasNoLeast } from "../listing_config.js";
import { payoutOf } from "../listing_state.js";
import { t } from "../texts.js";
import "../texts/listing_form.js";
import "../texts/listing_plan.js";
import { confirmed } from "./dialog.js";

/** Resolves to whether it shall be done; on paper nothing is signed, so nothing is asked. `config` as the form or the server has it. */
export async function confirmListing({ name, config, plan }) {
  if (config.dryRun) return true;
  if (plan.price === null) {
    const lines = [t("confirm_listing.none.what"), hasNoLeast(config) && t("sell.least.none")];
    return confirmed({ title: t("confirm_listing.none", { name }), lines, act: t("confirm_listing.start"), isDanger: false });
  }
  const floor = plan.market.lowestAsk;
  const payout = payoutOf(plan);
  return confirmed({
    title: t("confirm_listing", { name, price: amount(plan.price) }),
    lines: [
      payout !== null && t("confirm_listing.receive", { payout: amount(payout) }),
      floor > 0 && plan.price < floor && t("confirm_listing.below", { floor: amount(floor) }),
      config.priceMode !== "fixed" && t("confirm_listing.moves", { least: plan.leastPrice === null ? null : amount(plan.leastPrice) }),
      t("confirm_listing.signature"),
    ],
    act: t("confirm_listing.do"),
    isDanger: false,
  });
}
