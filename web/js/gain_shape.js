// Gain and worth over time, as lines of plain numbers, so that it can be tested anywhere.

/** Names of the times that can be chosen, in seconds. */
export const SPANS = { "1d": 86_400, "1w": 604_800, "1m": 2_592_000, "1y": 31_536_000 };

const HOURS_SHOWN_S = 62 * 86_400;
/** Seconds between two samples that are not joined: in between nothing ran. Of a long `span` there is one a day. */
export const gapOf = (span) => (span > HOURS_SHOWN_S ? 60 : 2.5) * 3600;

/**
 * Rows of what is known at each time: {time, gained, unrealized, exposure, unknown}, null where it is not. `gained` counts
 * from the first one; between two samples the one before holds.
 */
export function rowsOf(series, gap) {
  let held = null;
  return series.time.map((time, i) => {
    const isSample = series.exposureSats[i] !== null;
    if (isSample) held = { time, unrealized: series.unrealizedSats[i], exposure: series.exposureSats[i], unknown: series.unknownItems[i] };
    const now = held && time - held.time <= gap ? held : { unrealized: null, exposure: null, unknown: null };
    return { ...now, time, gained: series.realizedSats[i] - series.realizedSats[0], isSample };
  });
}

/** Values to write at an axis: few, round, and one of them 0. */
export function ticksOf(least, most, count) {
  const rough = Math.max(1, (most - least) / Math.max(1, count));
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * ten).find((each) => each * 1.5 >= rough);
  const found = [];
  for (let at = Math.ceil(least / step); at * step <= most; at += 1) found.push(at * step || 0);
  return found;
}

const STEPS_MIN = [1, 2, 5, 10, 20, 30, ...[1, 2, 3, 6, 12, 24, 48, 168, 336, 720, 1440, 2880].map((hours) => 60 * hours)];

/** Times to write below: [seconds], at full minutes, hours or midnights of the reader's zone, `zoneS` seconds ahead of UTC. */
export function timesOf(from, to, count, zoneS) {
  const step = 60 * (STEPS_MIN.find((each) => (to - from) / (each * 60) <= count) || STEPS_MIN.at(-1));
  const found = [];
  for (let at = Math.ceil((from + zoneS) / step) * step; at - zoneS <= to; at += step) found.push(at - zoneS);
  return found;
}

/**
 * The places of everything in a picture of this size: `gained` and `unrealized` and `exposure` are paths, `area` is what
 * `exposure` bounds; `gap` is that of the samples; `y` and `yExposure` turn sats into heights, `x` times into places. Small ones have no room for words.
 */
export function gainShape({ rows, from, to, gap }, width, height, isSmall) {
  const box = isSmall ? { left: 2, right: 6, top: 6, bottom: 6 } : { left: width < 560 ? 74 : 96, right: 12, top: 10, bottom: 26 };
  const strip = isSmall ? 0 : Math.round(height * 0.22);
  const base = height - box.bottom;
  const low = isSmall ? base : base - strip - 20;
  const values = rows.flatMap((row) => [row.gained, row.unrealized]).filter((value) => value !== null);
  const [least, most] = bounds(values);
  const high = Math.max(1, ...rows.map((row) => row.exposure || 0));
  const x = (time) => box.left + ((width - box.left - box.right) * (time - from)) / (to - from);
  const y = (sats) => box.top + ((low - box.top) * (most - sats)) / (most - least);
  const yExposure = (sats) => base - (strip * sats) / (high * 1.05);
  const [unrealized, exposure] = [["unrealized", y], ["exposure", yExposure]].map(([name, at]) => stretches(rows, name, gap).map((each) => each.map((row) => [x(row.time), at(row[name])])));
  return {
    box, low, base, x, y, yExposure, least, most, high,
    gained: stepped(rows.map((row) => [x(row.time), y(row.gained)])),
    unrealized: unrealized.map(lined).join(""),
    exposure: exposure.map(lined).join(""),
    area: exposure.map((points) => `${lined(points)}V${written(base)}H${written(points[0][0])}Z`).join(""),
  };
}

/** Least and most to show, 0 among them, with some room above and below what is not 0. */
function bounds(values) {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  const room = (most - least) * 0.06;
  return least === most ? [-1, 1] : [least && least - room, most && most + room];
}

/** Samples with a value, in stretches without a gap. */
function stretches(rows, name, gap) {
  const found = [];
  let last = null;
  for (const row of rows.filter((each) => each.isSample)) {
    if (row[name] === null) last = null;
    else if (last !== null && row.time - last <= gap) found.at(-1).push(row), (last = row.time);
    else found.push([row]), (last = row.time);
  }
  return found;
}

const written = (value) => value.toFixed(1);
// One alone is a dot: the line's ends are round.
const lined = (points) => `M${points.map(([x, y]) => `${written(x)} ${written(y)}`).join("L")}${points.length === 1 ? "h0" : ""}`;
const stepped = ([first, ...rest]) => (first ? `M${written(first[0])} ${written(first[1])}${rest.map(([x, y]) => `H${written(x)}V${written(y)}`).join("")}${rest.length ? "" : "h0"}` : "");
