// What a timeline draws on its canvas beside the lines of uPlot: the range, the life of each bid, fills, the moment.

function inside(u, draw) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  // uPlot leaves the dashes of its last line.
  ctx.setLineDash([]);
  draw(ctx, window.devicePixelRatio || 1);
  ctx.restore();
}

/** Stretches of neighbouring times in which `ends` tells {top, low}: each one shape, so that no seam shows between. */
function stretchesOf(columns, ends) {
  const found = [];
  let open = null;
  columns.time.forEach((time, i) => {
    const at = ends(i);
    const until = columns.time[i + 1];
    if (!at?.top || !at.low || until === undefined) return void (open = null);
    if (!open) found.push((open = []));
    open.push({ from: time, to: until, ...at });
  });
  return found;
}

/** The range, as high as it was at each time; where bids are too many to draw, the stretch that they reached over. */
export function drawBand(u, { columns, range, hasLives }, colour) {
  const ends = (i) => {
    const reference = columns.reference[i];
    if (range && hasLives) return reference && { top: reference * range.high, low: reference * range.low };
    return hasLives ? null : { top: columns.top[i], low: columns.low[i] };
  };
  inside(u, (ctx) => {
    ctx.fillStyle = colour;
    for (const stretch of stretchesOf(columns, ends)) {
      ctx.beginPath();
      for (const { from, to, top } of stretch) for (const time of [from, to]) ctx.lineTo(u.valToPos(time, "x", true), u.valToPos(top, "y", true));
      for (const { from, to, low } of [...stretch].reverse()) for (const time of [to, from]) ctx.lineTo(u.valToPos(time, "x", true), u.valToPos(low, "y", true));
      ctx.fill();
    }
  });
  if (!hasLives) drawReach(u, columns);
}

function drawReach(u, columns) {
  const colour = getComputedStyle(document.documentElement).getPropertyValue("--own").trim();
  inside(u, (ctx, ratio) => {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5 * ratio;
    for (const name of ["top", "low"]) {
      columns.time.forEach((time, i) => {
        const price = columns[name][i];
        if (!price || columns.time[i + 1] === undefined) return;
        const y = u.valToPos(price, "y", true);
        ctx.beginPath();
        ctx.moveTo(u.valToPos(time, "x", true), y);
        ctx.lineTo(u.valToPos(columns.time[i + 1], "x", true), y);
        ctx.stroke();
      });
    }
  });
}

/** Each bid as a line at its price from its birth to its end: bright while it lives, with a star where it was filled. */
export const lifeDrawer = (given, token) => (u) => {
  const { lives } = given.current;
  const [own, good, panel] = ["--own", "--good", "--panel"].map(token);
  inside(u, (ctx, ratio) => {
    ctx.lineCap = "round";
    for (const life of lives) {
      const from = u.valToPos(life.from, "x", true);
      const to = u.valToPos(life.to, "x", true);
      const y = u.valToPos(life.unit, "y", true);
      ctx.strokeStyle = own;
      ctx.globalAlpha = life.isOpen || life.isFilled ? 1 : 0.55;
      ctx.lineWidth = (life.isOpen ? 3 : 2) * ratio;
      ctx.beginPath();
      ctx.moveTo(from, y);
      ctx.lineTo(Math.max(to, from + 1), y);
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
    for (const life of lives.filter((each) => each.isFilled)) {
      drawStar(ctx, u.valToPos(life.to, "x", true), u.valToPos(life.unit, "y", true), 8 * ratio, good, panel);
    }
  });
};

function drawStar(ctx, x, y, radius, fill, edge) {
  ctx.beginPath();
  for (let i = 0; i < 10; i += 1) {
    const angle = -Math.PI / 2 + (i * Math.PI) / 5;
    const far = i % 2 ? radius * 0.45 : radius;
    ctx.lineTo(x + far * Math.cos(angle), y + far * Math.sin(angle));
  }
  ctx.closePath();
  Object.assign(ctx, { fillStyle: fill, strokeStyle: edge, lineWidth: 2 });
  ctx.stroke();
  ctx.fill();
}

/** A line at the moment that is shown. */
export function drawMark(u, mark, colour) {
  if (mark === null) return;
  inside(u, (ctx, ratio) => {
    const x = u.valToPos(mark, "x", true);
    Object.assign(ctx, { strokeStyle: colour, lineWidth: 1.5 * ratio, globalAlpha: 0.8 });
    ctx.beginPath();
    ctx.moveTo(x, u.bbox.top);
    ctx.lineTo(x, u.bbox.top + u.bbox.height);
    ctx.stroke();
  });
}
