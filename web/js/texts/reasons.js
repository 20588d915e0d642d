// Every code of docs/reasons.md in a trader's words: [title of three words at most, why in one short sentence, kind].
// The kind chooses the colour and the shape: do, keep, wait, limit, fault or stop.
import { amount } from "../format.js";

export const REASONS = {
  // Actions
  place: ["New bid", "A bid is wanted at this price.", "do"],
  kept: ["Kept", "Close enough to where it should be.", "keep"],
  renew: ["Renewed", "Near its end: cancelled, and placed again at the price of now.", "do"],
  renew_waits: ["Renewed next", "Near its end; others are renewed first, this one in the next cycle.", "wait"],
  in_flight: ["In flight", "Being placed, or its fate is not known yet. Its slot stays taken until it is.", "wait"],
  cancelling: ["Cancelling", "The cancel is sent and not confirmed yet.", "wait"],
  expired: ["Expired", "Past its end and not closed yet. Its slot stays taken until it is.", "wait"],
  // Why a rung gets no bid
  plan_bids: ["Plan limit", "Your plan allows fewer bids for a task.", "limit"],
  range_empty: ["Empty range", "The low end lies above the high end.", "limit"],
  rungs_merged: ["Same price", "The rung above has this price, and the marketplace takes no equal bids.", "keep"],
  task_total: ["Task total", "It would pass this task's total.", "limit"],
  exposure_limit: ["Exposure limit", "It would pass your exposure limit. Room comes as other bids end.", "limit"],
  bid_count: ["Slot not free", "A bid that should be gone is not gone yet.", "wait"],
  insufficient_balance: ["Balance too low", "The balance does not cover price and fee. Add funds on the Wallet page.", "limit"],
  fee_unknown: ["Fee unknown", "No fee rate could be read. Nothing is placed until one is.", "fault"],
  balance_unknown: ["Balance unknown", "The balance could not be read. Nothing is placed until it is.", "fault"],
  no_reference: ["No floor", "There is no floor that can be trusted. Nothing is placed until there is.", "fault"],
  min_age: ["Too young", "The bid here was placed moments ago. It moves once it is old enough.", "wait"],
  slot_taken: ["Slot taken", "A bid that is left alone holds this slot.", "keep"],
  own_bids_unknown: ["Own bids unknown", "Your live bids could not be read. Nothing is placed until they are.", "fault"],
  bids_unknown: ["Rivals unknown", "The bids of others could not be read. Nothing is placed or raised until they are.", "fault"],
  unit_unknown: ["Rune unknown", "The rune's smallest unit is not known, so no quantity can be computed.", "fault"],
  below_lot: ["Too few sats", "The sats for each order do not buy the smallest unit at this price.", "limit"],
  raise_limited: ["Raised enough", "Raised as often as is allowed in an hour. It may rise again after that.", "limit"],
  max_fills: ["Fills used up", "The open bids could already fill as often as you allow.", "limit"],
  spend_cap: ["Spend cap", "It would pass the task's spend cap.", "limit"],
  max_fills_per_day: ["Day's fills", "The open bids could fill as often as 24 hours allow.", "limit"],
  spend_cap_per_day: ["Day's spend cap", "It would pass what may be spent in 24 hours.", "limit"],
  budget: ["Shared budget", "It would pass the budget that this task shares with others.", "limit"],
  fill_pause: ["Pause after fill", "A bid was just filled. The next ones wait a moment.", "wait"],
  fill_burst: ["Fill burst", "Several bids were filled within minutes. Nothing more is placed for now.", "stop"],
  quota: ["Calls run short", "The calls to the marketplace run short. Lower rungs wait.", "limit"],
  clock_skew: ["Clocks differ", "Our clock and the marketplace's are too far apart. Nothing is placed.", "fault"],
  signed_limit: ["Signing limit", "A signed bid counts until it expires, cancelled or not. Not enough has expired yet.", "limit"],
  reduce: ["Reduce only", "The brake lets bids go, and none come.", "stop"],
  floor_guard: ["Floor outside", "The floor is not where the task wants it. It goes on once it is.", "stop"],
  floor_drop: ["Floor fell", "The floor fell as far as you watch for. Every bid goes, none comes for now.", "stop"],
  active_hours: ["Off hours", "Outside the task's hours. Bids come back when they begin.", "stop"],
  // Why a live bid is cancelled or left alone
  hardcap: ["Above hard cap", "Higher than the hard cap.", "stop"],
  at_ask: ["At the ask", "A listing could be bought for this price instead.", "stop"],
  above_range: ["Above range", "The market fell: the bid is above the high end.", "do"],
  below_range: ["Below range", "The market rose: the bid is below the low end.", "do"],
  halt: ["Halted", "The brake lets no bid stand.", "stop"],
  not_highest: ["Not highest", "Somebody bids more, and this task bids only as the highest.", "do"],
  outbid: ["Outbid", "Somebody bids more: replaced by a bid that ranks ahead.", "do"],
  step_down: ["Stepped down", "It was more than it takes to rank ahead.", "do"],
  wrong_trait: ["Other trait", "On another trait than the task asks for.", "do"],
  wrong_quantity: ["Other quantity", "For another quantity than the task asks for.", "do"],
  duplicate: ["Duplicate", "Same price as another bid of yours, with more bids than rungs.", "do"],
  over_count: ["One too many", "There are more bids than rungs.", "do"],
  surplus: ["Market moved", "No rung is close to this bid any more.", "do"],
  update_off: ["Left alone", "No rung is close to it, but replacing is switched off.", "keep"],
  no_overlap: ["No room beside", "The new bid must stand before the old one goes, and does not fit beside it.", "limit"],
  expiring: ["Left to expire", "No rung needs it, and it ends by itself soon.", "keep"],
  // Listings
  list: ["Listed", "Nothing was listed yet.", "do"],
  relist: ["Listed again", "The marketplace dropped the listing while the inscription is still here.", "do"],
  moved: ["Moved", "The inscription lies on another output: the old signature is worth nothing.", "do"],
  lowered: ["Lowered", "The wanted price fell.", "do"],
  raised: ["Raised", "The wanted price rose, or the listing was below its least price.", "do"],
  at_min: ["At least price", "The least price holds.", "limit"],
  unchanged: ["Unchanged", "Close enough to the wanted price.", "keep"],
  listing_young: ["Too young", "Listed moments ago. It may be lowered once it is old enough.", "wait"],
  lower_limited: ["Lowered enough", "Lowered as far as is allowed within an hour.", "limit"],
  small_raise: ["Raise too small", "The cheaper signature would stay good, so a small raise gains nothing.", "keep"],
  own_listings_unknown: ["Listings unknown", "Your listings could not be read. Nothing is signed until they are.", "fault"],
  holding_unknown: ["Place unknown", "It could not be read where the inscription lies. Nothing is signed until it is.", "fault"],
  spend_pending: ["Being moved", "An unconfirmed transaction moves the inscription.", "wait"],
  spent: ["Gone", "The inscription is not here any more: sold, or sent away.", "stop"],
  relist_confirming: ["Looks twice", "One look does not show the listing. A second one must confirm that.", "wait"],
  delisted_often: ["Dropped often", "The marketplace dropped the listing again and again. It is not listed for now.", "stop"],
  impossible_price: ["Impossible price", "More than every bitcoin there can be.", "fault"],
  // Fates
  placed: ["Placed", "The marketplace took it.", "do"],
  listed: ["Listed", "The marketplace took it.", "do"],
  unknown: ["Fate unknown", "No answer came. It counts, nothing is sent twice, and it is looked for.", "wait"],
  refused: ["Refused", "The marketplace said no.", "fault"],
  no_coins: ["No coins left", "No coins are left to pay with, where each bid needs one of its own.", "limit"],
  not_sent: ["Not sent", "Nothing reached the marketplace. It is tried again.", "fault"],
  not_signed: ["Not signed", "The signer refused or did not answer. The task's line says which rule.", "fault"],
  not_allowed: ["Not allowed", "The task is no longer wanted, or another worker has taken over.", "stop"],
  put_off: ["Put off", "It waits for what became of the one before.", "wait"],
  installation_limit: ["Limit of all", "It would pass the exposure limit of all users together.", "limit"],
  open_elsewhere: ["Open elsewhere", "A deleted task's listing of this item is not ended yet.", "wait"],
  // The worker's own reasons to cancel
  dry_run: ["On paper", "The task was turned into a dry run, or out of one.", "do"],
  wrong_slug: ["Other collection", "The task was changed to another collection or rune.", "do"],
  overdue: ["Overdue", "Still shown well after its end.", "do"],
  no_rung: ["No rung", "The plan has no word for it.", "do"],
};

/** Marks of a whole plan: [title, why]. */
export const MARKS = {
  cold_start: ["Learns the floor", "Too little floor history yet to detect a spike. Until then only the hard cap protects you."],
  floor_spike: ["Floor spike", "The floor jumped: bids follow a multiple of its median over the last hour."],
  floor_alarm: ["Floor alarm", "The lowest ask is far above its median. Somebody may be moving it."],
  trait_floor_missing: ["No trait floor", "No ask is known to have the trait: the collection's floor stands in."],
  thin_book: ["Thin book", "The asks hold less than half of the depth: there is no VWAP."],
  rival_above_ask: ["Odd rival", "Somebody bids more than the lowest ask, which they could buy. They are not followed."],
  no_reference_fixed: ["No floor", "The fixed range goes on without the ask as its cap."],
};

/** Codes of what went wrong with a task: [what it is, what to do or when it ends]. */
export const FAULTS = {
  venue_unavailable: ["The marketplace does not answer", "Open bids there can still be filled. It is asked again in the next cycle."],
  venue_not_understood: ["An answer is not understood", "The marketplace answered in a form that is not known. Nothing is concluded from it, and it is asked again. Tell the operator if it lasts."],
  venue_rate_limited: ["The marketplace asks for a pause", "It goes on by itself when the pause is over."],
  venue_unknown: ["An answer was lost", "Something was sent and its answer did not come. It is looked for, and nothing is sent twice."],
  venue_refused: ["The marketplace refused", "It is tried again in the next cycle."],
  insufficient_funds: ["Not enough funds", "The marketplace says the wallet does not cover the bid. Add funds on the Wallet page."],
  price_grid: ["Price off the grid", "The marketplace takes other steps of price. The operator is told."],
  below_minimum: ["Below the minimum", "The marketplace takes no bid this low. Raise the range."],
  not_found: ["Not known there", "The marketplace does not know what was asked for. Check the name."],
  auth_failed: ["Key not accepted", "The marketplace does not accept the installation's key. The operator must look."],
  sign_in_needed: ["Session missing", "The wallet's session at the marketplace is over. It is made anew."],
  not_supported: ["Not possible there", "This marketplace, or this installation, cannot do it."],
  signer_away: ["The signer is away", "Nothing is signed until it is back, and cancels may have to wait. Open bids can still be filled."],
  signer_locked: ["The signer is locked", "The operator must unlock it. Nothing is signed until then."],
  signer_refused: ["The signer refused", "One of its rules does not allow this. Nothing was sent."],
  max_fills: ["Fills used up", "Filled as often as you allow. Raise the limit to go on."],
  spend_cap: ["Spend cap reached", "What the task may spend is spent. Raise the cap to go on."],
  max_fills_per_day: ["Day's fills used up", "It goes on when 24 hours have passed."],
  spend_cap_per_day: ["Day's spend cap reached", "It goes on when 24 hours have passed."],
  budget: ["Budget used up", "The shared budget leaves too little. It goes on when there is room."],
  fill_burst: ["Fill burst", "Several bids were filled within minutes. Look at the market, then start it again."],
  clock_skew: ["Clocks differ", "Our clock and the marketplace's are too far apart. The operator must look."],
  hardcap: ["Hard cap too low", "The hard cap leaves no price to bid."],
  quota: ["Calls run short", "The calls to the marketplace run short. Fewer rungs are kept until they last again."],
  no_coins: ["No coins left", "Bids are paid with whole coins, and none are left. Add funds on the Wallet page."],
  database_damaged: ["Database damaged", "Nothing is placed, and cancels are sent where the database still shows the bids. The operator must look."],
  disk_full: ["Disk full", "The disk has too little room: nothing is placed, and cancels are sent. The operator must look."],
  not_entitled: ["Plan over", "The plan is over, or this address may not trade any more. An admin can change it."],
  no_reference: ["No floor", "There is no floor that can be trusted. Nothing is placed until there is."],
  impossible_price: ["Impossible price", "More than every bitcoin there can be. Check the price."],
  holding_unknown: ["Place unknown", "It could not be read where the inscription lies. It is asked again."],
  delisted_often: ["Dropped often", "The marketplace dropped the listing again and again. Ask the marketplace why."],
  not_in_vault: ["Not in the vault", "The inscription is not in the vault, or left it without a known sale."],
  bad_config: ["Config cannot be done", "The task's settings cannot be carried out. Edit them."],
  start_refused: ["Start refused", "The last start was refused. The words say why."],
  start_failed: ["Start did not work", "The worker could not be started. It is tried again."],
  worker_ended: ["Worker ended", "The task's worker ended or hung. It is started again."],
  given_up: ["Given up", "The worker ended too often. Nothing is tried any more until you start it."],
  no_cycle: ["No cycle", "The task runs, and nothing was recorded for three loops. The operator must look."],
  cannot_cancel: ["Cannot cancel now", "Open bids cannot be taken off for now. It is tried again."],
  other: ["Something else", "The words say what."],
};

/** A server's words about what it could not do, as they are said to people. */
export const plainWords = (text) => (text || "").replace(/\bfailed to\b/g, "could not").replace(/^./, (first) => first.toUpperCase());

const unknown = (code) => [String(code).replaceAll("_", " "), "", "keep"];

/** {title, why, kind} of a reason or a fate. */
export function reasonOf(code) {
  const [title, why, kind] = REASONS[code] || unknown(code);
  return { title, why, kind };
}

/** {title, why} of a mark. */
export function markOf(code) {
  const [title, why] = MARKS[code] || unknown(code);
  return { title, why };
}

/** The server's words as a sentence for people. */
export function spoken(words) {
  const said = (words || "").replace(/^failed to /, "could not ");
  return said.slice(0, 1).toUpperCase() + said.slice(1);
}

/** Says which address to send money to, and how much; without `sats` the amount is not known. */
export const fundWords = (address, sats) => `Send ${sats ? `at least ${amount(sats)}` : "sats"} to ${address}.`;

/** {title, why} of what went wrong, by its code; the server's words where no code says more than they do. */
export function faultOf(task) {
  const [title, why] = (task.lastErrorCode !== "other" && FAULTS[task.lastErrorCode]) || [spoken(task.lastError), ""];
  const { address, sendSats } = task.lastErrorParams || {};
  return { title, why: address ? `${why} ${fundWords(address, sendSats)}` : why };
}
