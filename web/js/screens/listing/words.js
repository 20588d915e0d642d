// A listing's config in words.
import { amount, percent } from "../../format.js";
import { multiplies } from "../../listing_config.js";
import { venues } from "../../store.js";
import { t } from "../../texts.js";
import "../../texts/listing_form.js";

/** The way to the price, in one line. */
export function priceWords(config) {
  if (config.priceMode === "fixed") return t("listing.by.fixed", { price: amount(config.priceSats) });
  if (config.priceMode === "undercut") return t("listing.by.undercut", { sats: amount(config.undercutSats) });
  return t("listing.by.percent", { share: percent(config.pricePercent), reference: referenceWords(config) });
}

const referenceWords = (config) =>
  config.reference === "traitFloor" ? t("listing.reference.traitFloor", { type: config.traitType, value: config.traitValue }) : t(`listing.reference.${config.reference}`);

function costWords(sats, source, none) {
  const cost = sats === null ? none : amount(sats);
  return source === "fill" || source === "claimed" ? t(`listing.set.cost.${source}`, { cost }) : cost;
}

const stepWords = (step) => t("listing.step", { hours: step.afterHours, price: "priceSats" in step ? amount(step.priceSats) : percent(step.pricePercent) });

/** [name, words] of all settings that matter in this config. */
export function settingsOf({ config, venue, tags, costSource }) {
  const none = t("listing.set.none");
  return [
    ["price", priceWords(config)],
    ...(multiplies(config) && config.priceMode !== "percent" ? [["reference", referenceWords(config)]] : []),
    ["least", config.minPriceSats ? amount(config.minPriceSats) : none],
    ["cost", costWords(config.costSats, costSource, none)],
    ["margin", config.minMargin ? percent(config.minMargin) : none],
    ["schedule", config.priceSchedule.length ? config.priceSchedule.map(stepWords).join("; ") : none],
    ...(config.allowBelowReference ? [["below", t("listing.set.yes")]] : []),
    ["venue", venues.value?.find((each) => each.name === venue)?.title || venue],
    ["ignored", config.ignoreAddresses.length ? config.ignoreAddresses.join(", ") : none],
    ["pace", t("listing.set.seconds", { seconds: config.loopSeconds ?? 30 })],
    ["paper", t(config.dryRun ? "listing.set.yes" : "listing.set.no")],
    ["tags", tags.length ? tags.join(", ") : none],
  ];
}
