// Texts of the parts that show a task in its market: strip, tags and row.
import { define, plural } from "../page.js";

const UNREAD = { asks: "the asks", bids: "the bids", ownBids: "your bids", ownListings: "your listings", sales: "the sales" };

define({
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
  "row.market": "Market",
  "row.place": "Best place",
  "row.sats": "On the market",
  "row.each": "per token",
  "row.place.unknown": "The bids of others are not known: neither the task nor this page has read them.",
  "row.spark": "Floor of the last three hours",
});
