// Texts of the parts that show a task in its market: strip, tags and table.
import { define, plural } from "../page.js";

const UNREAD = { asks: "the asks", bids: "the bids", ownBids: "your bids", ownListings: "your listings", sales: "the sales" };

define({
  "state.empty": "No open bid",
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
  "row.place": "Best rank",
  "row.gain": "Gain",
  "row.said": "Last cycle",
  "row.each": "per token",
  "row.place.unknown": "This task doesn't outbid, so it doesn't read others' bids. Open it to see its rank.",
  "row.place.unread": "The last cycle did not read others' bids.",
  "row.floor.old": "The last cycle did not read the floor. This one is older.",
  "row.gain.none": "Nothing that this task bought was sold yet.",
  "row.spark": ({ hours }) => `Floor, last ${hours} hours`,
  "table.density": "Row height",
  "table.density.compact": "Compact",
  "table.density.roomy": "Roomy",
  "table.choose": "Selected",
});
