// Texts of the parts that show a task in its market: strip, tags and row.
import { define, plural } from "../page.js";

const UNREAD = { asks: "the asks", bids: "the bids", ownBids: "your bids", ownListings: "your listings", sales: "the sales" };

define({
  "strip.none": "Appears with the first cycle",
  "strip.unread": "The last cycle couldn't read the market",
  "strip.words": ({ bids, top, floor, place }) =>
    `${bids} ${plural(bids, { one: "open bid", other: "open bids" })}${bids ? `, the highest at ${top}` : ""}${place ? `, rank ${place}` : ""}${floor ? `; floor ${floor}` : "; floor unknown"}`,
  "said.none": "No cycle yet",
  "said.filled": ({ count }) => `${count} filled`,
  "said.filled.why": "Bought since the previous cycle.",
  "said.gone": ({ words }) => `Closed: ${words}`,
  "said.unread": ({ count }) => `${count} ${plural(count, { one: "row", other: "rows" })} not understood`,
  "said.unread.kind": ({ kind, rows }) => `${rows} of ${UNREAD[kind] || kind}`,
  "said.unread.why": ({ kinds }) => `The marketplace's answers contain rows in an unknown format: ${kinds}. They are skipped, and nothing that may be in one of them counts as closed.`,
  "row.market": "Market",
  "row.place": "Best rank",
  "row.sats": "Open bids",
  "row.each": "per token",
  "row.place.unknown": "Others' bids have not been read, so the rank is unknown.",
  "row.spark": "Floor, last three hours",
});
