import { define, plural } from "../page.js";

define({
  "choice.count": ({ count }) => (count ? plural(count, { one: "1 choice", other: `${count} choices` }) : "No choices. What you write counts."),
  "choice.floor": ({ floor }) => `floor ${floor}`,
  "choice.volume": ({ volume }) => `${volume} traded`,
  "choice.own": "yours",
  "choice.items": ({ count }) => plural(count, { one: "1 item", other: `${count.toLocaleString("en-US")} items` }),
  "choice.values": ({ count }) => plural(count, { one: "1 value", other: `${count.toLocaleString("en-US")} values` }),
});
