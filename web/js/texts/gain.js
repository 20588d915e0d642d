import { define, plural } from "../page.js";

define({
  "gain.title": "Gain and worth",
  "gain.span": "Time",
  "gain.span.1d": "Day",
  "gain.span.1w": "Week",
  "gain.span.1m": "Month",
  "gain.span.1y": "Year",
  "gain.gained": "Gained",
  "gain.unrealized": "Unrealised, at the floor",
  "gain.exposure": "Open bids",
  "gain.now": "now",
  "gain.none": "No gain to show yet. Once a task runs, your open bids and the worth of what you hold are recorded every hour; each sale adds its gain.",
  "gain.label": "Gain, unrealised gain and open bids over time. Arrow keys move through it.",
  "gain.at": ({ when, gained, unrealized, exposure, unknown }) =>
    `${when}: gained ${gained}, unrealised ${unrealized}, open bids ${exposure}${unknown ? `, ${unknownItems(unknown)}` : ""}`,
  "gain.unknown": ({ count }) => `${unknownItems(count)}, left out of the unrealised gain`,
  "gain.fees": ({ count }) => `without the unknown ${plural(count, { one: "fee", other: "fees" })} of ${count} ${plural(count, { one: "trade", other: "trades" })}`,
  "gain.numbers": "Gain and worth as numbers",
  "gain.items": "Without a floor",
  "gain.month": "Gained, 30 days",
});

function unknownItems(count) {
  return `${count} ${plural(count, { one: "item", other: "items" })} without a known floor`;
}
