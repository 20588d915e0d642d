// What it would take for the rungs without a bid to have one, as sentences: only of limits that somebody can change.
import { amount } from "../../format.js";
import { t } from "../../texts.js";
import { signingRoom } from "../../texts/rung_details.js";

const fullest = (rooms) => rooms.reduce((a, b) => (b.signedSats / b.mostSats > a.signedSats / a.mostSats ? b : a));

const WANTS = {
  insufficient_balance: ({ decision, lowest }) => {
    if (decision.balance === null) return null;
    const more = decision.fund?.missing || Math.max(0, lowest + (decision.feeReserve || 0) - decision.balance);
    return t("why.balance", { more: amount(more), balance: amount(decision.balance), address: decision.fund?.address });
  },
  exposure_limit: ({ me }) => me && t("why.exposure", { exposure: amount(me.stats.exposure), most: amount(me.stats.maxExposure) }),
  task_total: ({ decision }) => t("why.task_total", { most: amount(decision.config.maxBidTotal) }),
  signed_limit: ({ decision, details }) => {
    const [first] = details.map(signingRoom).filter(Boolean);
    const room = decision.signed.find((each) => each.whose === first?.whose) || (decision.signed.length ? fullest(decision.signed) : null);
    return room && t("why.signed", { signed: amount(room.signedSats), most: amount(room.mostSats), isKept: Boolean(first?.kept) });
  },
  plan_bids: ({ me }) => me && t("why.plan", { most: me.planDetails.maxBidsPerTask }),
  spend_cap: () => t("why.spend"),
  spend_cap_per_day: () => t("why.spend"),
  max_fills: () => t("why.fills"),
  max_fills_per_day: () => t("why.fills"),
  budget: () => t("why.budget"),
  quota: () => t("why.quota"),
};

export function wantsOf(decision, known) {
  const empty = [...decision.rungs.filter((rung) => !rung.isLive), ...decision.unpriced];
  const reasons = new Set(empty.map((rung) => rung.reason));
  const sentences = [...reasons].map((reason) => {
    const prices = empty.filter((rung) => rung.reason === reason && rung.price).map((rung) => rung.price);
    const details = empty.filter((rung) => rung.reason === reason).map((rung) => rung.detail);
    return WANTS[reason]?.({ ...known, decision, details, lowest: prices.length ? Math.min(...prices) : 0 });
  });
  return [...new Set(sentences.filter(Boolean))];
}
