import { define, plural } from "../texts.js";

const rungs = (count) => `${count} ${plural(count, { one: "rung", other: "rungs" })}`;

define({
  "ladder.none": "No order book yet. It is read with the next cycle.",
  "ladder.floor": "Floor",
  "ladder.cap": ({ price }) => `Hard cap ${price}`,
  "ladder.spread": ({ share }) => `spread ${share}`,
  "ladder.no_bid": ({ why }) => `No bid: ${why}`,
  "ladder.sentence": ({ name, floor, others, bids, none }) =>
    [
      `${name}: floor ${floor}`,
      others === null ? "bids of others not known" : `${others} ${plural(others, { one: "bid", other: "bids" })} of others`,
      bids.length ? `yours: ${bids.join("; ")}` : "none of yours",
      ...(none.length ? [none.join("; ")] : []),
    ].join(". "),
  "legend.own": "yours",
  "legend.bids": "bids",
  "legend.asks": "listings",
  "legend.range": "your range",
  "legend.floor": "floor",
  "legend.reference": "reference",
  "legend.lives": "your bids",
  "legend.filled": "filled",
  "why.ends": ({ left }) => `ends in ${left}`,
  "why.ended": "past its end",
  "why.dry": "What would be placed. Nothing is on the market, and nothing can be bought.",
  "why.no_rungs": "No rung was planned.",
  "why.all_ended": "None of the bids that were planned is open any more.",
  "why.wants": "Bidding more needs",
  "why.cancelled": "Cancelled",
  "why.filled": "Filled",
  "why.order": ({ id }) => `order ${id}`,
  "why.whole": ({ amount }) => `The whole order: ${amount}`,
  "why.order_of": ({ amount }) => `an order of ${amount}`,
  "why.of_reference": "Of the reference price, which the range hangs on",
  "why.unpriced": ({ count, why }) => `${rungs(count)}, no bid: ${why}.`,
  "timeline.away": "The chart could not be loaded. Its numbers are in the table.",
});
