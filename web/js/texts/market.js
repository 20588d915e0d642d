// Texts of the parts that show a task in its market: strip, tags and table.
import { define, plural } from "../page.js";

const UNREAD = { asks: "the asks", bids: "the bids", ownBids: "your bids", ownListings: "your listings", sales: "the sales" };

define({
  "state.empty": "No bid placed",
  "strip.none": "Drawn with the first cycle",
  "strip.unread": "The last cycle read no market",
  "strip.words": ({ bids, top, floor, place }) =>
    `${bids} ${plural(bids, { one: "bid of yours", other: "bids of yours" })}${bids ? `, the highest at ${top}` : ""}${place ? `, place ${place}` : ""}${floor ? `; floor ${floor}` : "; floor not known"}`,
  "said.none": "No cycle yet",
  "said.filled": ({ count }) => `${count} filled`,
  "said.filled.why": "Bought since the cycle before.",
  "said.gone": ({ words }) => `Gone: ${words}`,
  "said.unread": ({ count }) => `${count} ${plural(count, { one: "row", other: "rows" })} not understood`,
  "said.unread.kind": ({ kind, rows }) => `${rows} of ${UNREAD[kind] || kind}`,
  "said.unread.why": ({ kinds }) => `The marketplace's answers have rows in an unknown form: ${kinds}. They are left out, and nothing is taken for gone that may be in one.`,
  "row.place": "Place",
  "row.gain": "Gain",
  "row.said": "Last cycle",
  "row.each": "Per token",
  "row.place.unknown": "This task does not outbid, so it does not read the bids of others. Open it to see its place.",
  "row.place.unread": "The last cycle did not read the bids of others.",
  "row.floor.old": "The last cycle did not read the floor. This one is older.",
  "row.gain.none": "Nothing that it bought was sold yet.",
  "row.spark": ({ hours }) => `Floor of the last ${hours} hours`,
  "table.density": "Height of the rows",
  "table.density.compact": "Compact",
  "table.density.roomy": "Roomy",
  "table.choose": "Chosen",
});
