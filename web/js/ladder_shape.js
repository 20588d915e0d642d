// Where each thing of a ladder stands: price goes up, depth goes right. Numbers only, so that it can be tested anywhere.

const PAD = { top: 20, bottom: 14 };
const TALL = 36; // a label of two lines
const LOW = 19; // a label of one
const GAP = 4;
const ON_BAR = 30; // from one label on a bar to the next: a price above the bar, a place on it

/** Round numbers between two: about `count` of them. */
export function ticksOf(min, max, count) {
  const rough = (max - min) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * power).find((each) => each >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(min / step); i * step <= max; i += 1) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

/** Moves labels apart by `gap` so that none covers another and all lie within top and bottom, each near its place. */
export function spreadOut(labels, top, bottom, gap = GAP) {
  const list = labels.map((label) => ({ ...label })).sort((a, b) => a.y - b.y);
  list.forEach((label, i) => {
    const before = list[i - 1];
    const least = before ? before.at + (label.tall + before.tall) / 2 + gap : top + label.tall / 2;
    label.at = Math.max(label.y, least);
  });
  for (let i = list.length - 1; i >= 0; i -= 1) {
    const next = list[i + 1];
    const most = next ? next.at - (list[i].tall + next.tall) / 2 - gap : bottom - list[i].tall / 2;
    list[i].at = Math.min(list[i].at, most);
  }
  return list;
}

/** Depth as stairs: [[sum of what is nearer, price], ...] from the best price to where the picture ends. */
export function stairsOf(levels, min, max, end) {
  const points = [];
  let sum = 0;
  for (const { price, quantity } of levels) {
    if (price > max || price < min) break;
    points.push([sum, price], [sum + quantity, price]);
    sum += quantity;
  }
  if (points.length) points.push([sum, end]);
  return { points, sum };
}

const FAR = 1.6; // times the highest price of market and rungs: a high end above it would squeeze them into a line

/**
 * How far the picture goes: floor, range and rungs with room, some asks above, and the cap only if it is near. `beyond` is
 * the range's high end where the picture ends before it, else null.
 */
export function endsOf(picture, units) {
  const best = picture.bids?.[0]?.price;
  const market = [picture.floor, best, ...units].filter((price) => price > 0);
  const beyond = market.length && picture.high > FAR * Math.max(...market) ? picture.high : null;
  const inside = [picture.floor, picture.low, beyond ? null : picture.high, ...units].filter((price) => price > 0 && (!beyond || price <= FAR * Math.max(...market)));
  if (!inside.length && best) inside.push(best);
  if (!inside.length) return null;
  const low = Math.min(...inside);
  const high = Math.max(...inside);
  const room = high - low || high * 0.2;
  const asks = picture.asks || [];
  const someAsk = asks.length ? Math.min(asks[Math.min(6, asks.length - 1)].price, high + room * 0.35) : high;
  return { min: Math.max(0, low - room * 0.1), max: Math.max(high, someAsk) + room * 0.06, beyond };
}

/** How tall a ladder of so many labels must be to be read. */
export function heightOf(labels, isNarrow) {
  if (isNarrow) return Math.max(340, Math.min(620, 60 + labels * 34));
  return Math.max(430, labels * (isTight(labels) ? LOW + GAP : TALL + GAP) + 50);
}

const isTight = (labels) => labels > 12;

/**
 * The picture of a book with a ladder. `picture`: {asks, bids, floor, low, high, cap, rungs: [{unit, isLive, ...}]}, the
 * books without one's own, null where they are unknown. Returns null where there is no price at all.
 */
export function ladderShape(picture, width, height, isNarrow) {
  const rungs = picture.rungs.filter((rung) => rung.unit > 0);
  const ends = endsOf(picture, rungs.map((rung) => rung.unit));
  if (!ends) return null;
  const { min, max, beyond } = ends;
  const axis = isNarrow ? 64 : 88;
  const plot = Math.max(80, width - axis - (isNarrow ? 6 : 270));
  const right = axis + plot;
  const y = (price) => PAD.top + (height - PAD.top - PAD.bottom) * (1 - (price - min) / (max - min));
  const bids = stairsOf((picture.bids || []).filter((level) => level.price <= max), min, max, min);
  const asks = stairsOf((picture.asks || []).filter((level) => level.price >= min), min, max, max);
  const deepest = Math.max(bids.sum, asks.sum, Number.MIN_VALUE);
  const x = (sum) => axis + (plot * 0.82 * sum) / deepest;
  const line = (points) => points.map(([sum, price], i) => `${i ? "L" : "M"}${x(sum).toFixed(1)} ${y(price).toFixed(1)}`).join("");
  const area = (points) => (points.length ? `${line(points)}L${axis} ${y(points.at(-1)[1]).toFixed(1)}L${axis} ${y(points[0][1]).toFixed(1)}Z` : "");
  const own = rungs.filter((rung) => rung.isLive).map((rung) => rung.unit);
  const placed = rungs.map((rung) => ({ ...rung, y: y(rung.unit) }));
  const floorY = picture.floor ? y(picture.floor) : null;
  const tall = isTight(placed.length + 1) ? LOW : TALL;
  const labels = placed.map((rung) => ({ kind: "rung", rung, y: rung.y, tall }));
  if (floorY !== null) labels.push({ kind: "floor", y: floorY, tall: 20 });
  return {
    width, height, axis, right, plot, isNarrow, isTight: tall === LOW, floorY,
    ticks: ticksOf(min, max, Math.max(3, Math.floor(height / 74))).map((price) => ({ price, y: y(price) })),
    band: picture.low && picture.high >= picture.low ? bandOf(Math.min(picture.low, max), Math.min(picture.high, max), y) : null,
    beyond,
    cap: picture.cap ? { price: picture.cap, y: picture.cap < max ? y(picture.cap) : null } : null,
    bids: { line: line(bids.points), area: area(bids.points) },
    asks: { line: line(asks.points), area: area(asks.points) },
    rungs: placed,
    labels: isNarrow ? onBars(labels.filter((label) => label.kind === "rung")) : spreadOut(labels, GAP, height - 2),
    spread: spreadOf(picture, own, [...placed.map((rung) => rung.y), ...wordsOfCap(picture.cap, max, y)], y, isNarrow ? 34 : 22),
  };
}

const bandOf = (low, high, y) => ({ y: y(high), height: Math.max(1, y(low) - y(high)) });

/** Labels on the bars themselves: bids first; one that would cover another is left to the list beside. */
function onBars(labels) {
  const chosen = [];
  for (const label of [...labels].sort((a, b) => b.rung.isLive - a.rung.isLive || a.y - b.y)) {
    if (chosen.every((each) => Math.abs(each.y - label.y) >= ON_BAR)) chosen.push({ ...label, at: label.y });
  }
  return chosen.sort((a, b) => a.y - b.y);
}

/** The line of a cap within the picture, and the top of the words above it. */
const wordsOfCap = (cap, max, y) => (cap && cap < max ? [y(cap) - 16, y(cap)] : []);

/** The way from the floor to the best bid, with the middle of its largest free stretch; null where no word fits. */
function spreadOf(picture, own, taken, y, room) {
  const best = Math.max(picture.bids?.[0]?.price ?? 0, ...own);
  if (!picture.floor || !best || best >= picture.floor) return null;
  const [top, bottom] = [y(picture.floor), y(best)];
  const lines = [top, ...taken.filter((each) => each > top && each < bottom), bottom].sort((a, b) => a - b);
  let widest = [0, 0];
  for (let i = 1; i < lines.length; i += 1) if (lines[i] - lines[i - 1] > widest[1] - widest[0]) widest = [lines[i - 1], lines[i]];
  return widest[1] - widest[0] < room ? null : { share: (picture.floor - best) / picture.floor, y: (widest[0] + widest[1]) / 2 };
}
