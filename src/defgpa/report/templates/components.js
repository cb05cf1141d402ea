// Shape space: where the specimens lie along the components, and the shapes that lie there.

const pca = page.space && {
  shares: page.space.shares,
  scores: distances(page.space.scores),
  mean: positions(page.space.mean)[0],
  components: positions(page.space.components),
  gridMean: positions(page.space.grid.nodes)[0],
  gridComponents: positions(page.space.grid.components),
};

// the two components that are shown, where the sliders stand, how much the change is magnified
const slider = { shown: [0, pca?.shares.length > 1 ? 1 : 0], at: [0, 0], times: 1 };
const CROSS = "the shape drawn";
const MAX_WIDE_RINGS = 30; // around outliers; more of them would hide the dots
const MAX_NAMED = 5; // outliers
const MAX_LIVE_SPECIMENS = 500; // with more, the cross follows when a slider is let go

const scoresOf = (k) => allShapes.map((i) => pca.scores[i][k]);
const componentTitle = (k) => `component ${k + 1} (${(100 * pca.shares[k]).toPrecision(3)} %)`;
const extent = (values) => values.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);
const isEstimated = (i) => page.missing[i] / page.n_landmarks >= page.space.estimated;

// mean + Σ score · component, its difference from the mean magnified; points of landmarks or a grid
function combine(mean, components, scores) {
  const points = Float64Array.from(mean);
  slider.shown.forEach((k, slot) => {
    if (slot && k === slider.shown[0]) return;
    const component = components[k];
    const factor = slider.times * scores[slot];
    for (let c = 0; c < points.length; c++) points[c] += factor * component[c];
  });
  return points;
}
const shapeAt = (scores) => combine(pca.mean, pca.components, scores);

const spacePlots = {
  scatter() {
    const [across, up] = slider.shown;
    const { kinds, kindOf } = colouring(allShapes);
    const members = kinds.map((_, k) => allShapes.filter((i) => kindOf(i) === k));
    const showlegend = Boolean(groupNames()) || kinds.length <= MAX_LEGEND;
    const dots = kinds.map(({ name, colour: color, symbol }, k) => {
      const marker = {
        size: allShapes.length > 1000 ? 6 : 9,
        color,
        symbol: members[k].map((i) => (isEstimated(i) ? `${symbol}-open` : symbol)),
        opacity: allShapes.length > 1000 ? 0.6 : 0.85,
        line: { width: members[k].some(isEstimated) ? 1.5 : 0, color },
      };
      return specimenDots(members[k], marker, { name: escapeMarkup(shorten(name, 30)), showlegend });
    });
    const outlines = groupNames() && state.outline !== "none"
      ? kinds.flatMap(({ colour: color }, k) => outlineTrace(members[k], color))
      : [];
    const outliers = page.outliers ? allShapes.filter((i) => page.outliers.odd[i]) : [];
    const ring = outlierRing(outliers.length);
    const rings = outliers.length ? [specimenDots(outliers, ring, { name: "outlier", hoverinfo: "skip" })] : [];
    const marked = state.marked < 0 ? [] : [specimenDots([state.marked], {
      size: 13, color: colour("mark"), line: { width: 2, color: colour("card") },
    }, { name: escapeMarkup(shorten(shapes.names[state.marked], 30)), meta: "marked" })];
    const cross = {
      type: "scatter", mode: "markers", name: CROSS, hoverinfo: "skip",
      x: [slider.at[0]], y: [slider.at[1]], meta: "shown",
      marker: { symbol: "cross-thin", size: 19, line: { width: 2.5, color: colour("ink") } },
    };
    return {
      data: [...outlines, ...dots, ...rings, ...marked, cross],
      layout: layout({
        margin: { l: 12, r: 12, t: 40, b: 12 },
        xaxis: axis(componentTitle(across), { zeroline: true, zerolinecolor: colour("line"), nticks: 7 }),
        yaxis: axis(componentTitle(up), {
          zeroline: true, zerolinecolor: colour("line"), nticks: 7, scaleanchor: "x",
        }),
        uirevision: `${across},${up}`,
        annotations: nameSpecimens(outliers, (i) => pca.scores[i][across], (i) => pca.scores[i][up], above),
      }),
      buttons: ["zoom2d", "pan2d", "resetScale2d"],
    };
  },

  shape() {
    const points = shapeAt(slider.at);
    const moved = Float64Array.from(shapes.landmarks, (_, j) => distanceBetween(points, pca.mean, j));
    describeShape(moved);
    const isMesh = solid && shapes.faces;
    const data = [
      ...(isMesh ? [] : isDense() ? linkAndLabelTraces(pca.mean, true) : outlineTraces(pca.mean, "mean", true)),
      ...(state.change === "grid" ? componentGrid() : []),
      ...changeTraces(points, moved),
    ];
    const made = spaceFigure(data, shapeBox(), {
      showlegend: false,
      uirevision: `${slider.shown} ${slider.times}`,
    });
    return { ...made, aspect: null, companion: "scatter" }; // as high as the scatter beside it
  },

  ranking() {
    const { distance, limits, odd } = page.outliers;
    const order = [...allShapes].sort((a, b) => distance[b] - distance[a] || a - b);
    const rank = new Map(order.map((i, k) => [i, k + 1]));
    const trace = (chosen, marker, more) => ({
      type: scatterType(chosen.length),
      mode: "markers",
      x: chosen.map((i) => rank.get(i)),
      y: chosen.map((i) => distance[i]),
      text: chosen.map((i) => `<b>${escapeMarkup(shapes.names[i])}</b><br>${formatNumber(distance[i])} from the mean`),
      customdata: chosen,
      hoverinfo: "text",
      marker,
      showlegend: false,
      ...more,
    });
    const small = order.length > 1000;
    const { kinds, kindOf } = colouring(allShapes);
    const outliers = order.filter((i) => odd[i]);
    const data = [
      ...(groupNames()
        ? kinds.map(({ name, colour: color, symbol }, k) => trace(order.filter((i) => kindOf(i) === k),
          { size: small ? 4 : 8, color, symbol }, { name: escapeMarkup(shorten(name, 30)), showlegend: true }))
        : [trace(order, { size: small ? 4 : 8, color: groupColour(0) })]),
      trace(outliers, outlierRing(outliers.length), { name: "outlier", hoverinfo: "skip", showlegend: true }),
    ];
    if (state.marked >= 0) {
      data.push(trace([state.marked], { size: 13, color: colour("mark") }, { meta: "marked" }));
    }
    const names = nameSpecimens(outliers, (i) => rank.get(i), (i) => distance[i], aside);
    return {
      data,
      layout: layout({
        margin: { l: 12, r: 16, t: 40, b: 12 },
        xaxis: axis("rank", { tickformat: "d", rangemode: "tozero", nticks: 9 }),
        yaxis: axis("Procrustes distance from the mean", { rangemode: "tozero" }),
        dragmode: false,
        shapes: limits.map(({ at }) => ({
          type: "line", xref: "paper", x0: 0, x1: 1, y0: at, y1: at,
          line: { color: colour("ink"), width: 1, dash: "dash" },
        })),
        annotations: [...names, ...limitLabels(limits)],
      }),
    };
  },
};
if (pca) Object.assign(plots, spacePlots);

function outlierRing(count) {
  const [size, width] = count > MAX_WIDE_RINGS ? [10, 0.7] : [17, 1.5];
  return { size, symbol: "circle-open", color: colour("ink"), line: { width } };
}

// the limits of groups, named on the right; a name that would lie over another is left out
function limitLabels(limits) {
  const highest = extent(page.outliers.distance)[1];
  const shown = [];
  for (const limit of [...limits].sort((a, b) => b.at - a.at)) {
    if (shown.length < MAX_LEGEND && shown.every(({ at }) => at - limit.at > 0.07 * highest)) shown.push(limit);
  }
  return shown.map(({ at, group }) => ({
    xref: "paper", x: 1, y: at, xanchor: "right", yanchor: "bottom", showarrow: false,
    text: escapeMarkup(shorten(group ? `limit of ${group}` : "upper quartile + 1.5 IQR", 30)), font: { size: 12 },
  }));
}

// the names of a few specimens, at their dots, the oddest first; none is written over another
const above = { yanchor: "bottom", yshift: 8 };
const aside = { xanchor: "left", xshift: 11 };
const NAME_ROOM = [0.4, 0.1]; // of the picture: what a name takes
function nameSpecimens(candidates, x, y, where) {
  const ranges = [x, y].map((coordinate) => extent(allShapes.map(coordinate))).map(([low, high]) => high - low || 1);
  const spans = where === above ? ranges.map(() => Math.max(...ranges)) : ranges; // the scatter has one scale
  const isFarFrom = (i, j) => [x, y].some((coordinate, c) => Math.abs(coordinate(i) - coordinate(j)) > NAME_ROOM[c] * spans[c]);
  const chosen = [];
  for (const i of [...candidates].sort((a, b) => page.outliers.distance[b] - page.outliers.distance[a])) {
    if (chosen.length < MAX_NAMED && chosen.every((j) => isFarFrom(i, j))) chosen.push(i);
  }
  return chosen.map((i) => ({
    x: x(i), y: y(i), text: escapeMarkup(shortNames[i]),
    showarrow: false, font: { color: colour("ink"), size: 12 }, ...where,
  }));
}

function specimenDots(chosen, marker, more) {
  const [across, up] = slider.shown;
  const group = groupNames();
  const describe = (i) => `<b>${escapeMarkup(shapes.names[i])}</b>` +
    (group ? `<br>${escapeMarkup(group[page.columns[state.column].of[i]])}` : "") +
    `<br>${formatNumber(pca.scores[i][across])}, ${formatNumber(pca.scores[i][up])}` +
    (isEstimated(i) ? `<br>${page.missing[i]} of ${page.n_landmarks} landmarks estimated` : "");
  return {
    type: scatterType(chosen.length),
    mode: "markers",
    x: chosen.map((i) => pca.scores[i][across]),
    y: chosen.map((i) => pca.scores[i][up]),
    text: chosen.map(describe),
    customdata: chosen,
    hoverinfo: "text",
    marker,
    ...more,
  };
}

// the hull of a group, or the ellipse that holds 95 % of a normal distribution
function outlineTrace(members, color) {
  if (members.length < 3) return [];
  const points = members.map((i) => slider.shown.map((k) => pca.scores[i][k]));
  const corners = state.outline === "ellipse" ? ellipseOf(points) : hullOf(points);
  return [{
    type: "scatter", mode: "lines", name: "outline", showlegend: false, hoverinfo: "skip",
    x: [...corners, corners[0]].map(([x]) => x),
    y: [...corners, corners[0]].map(([, y]) => y),
    fill: "toself", fillcolor: `${color}1f`, line: { color, width: 1 },
  }];
}

// Andrew's monotone chain
function hullOf(points) {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const turn = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
  const chain = (ordered) => {
    const corners = [];
    for (const point of ordered) {
      while (corners.length > 1 && turn(corners.at(-2), corners.at(-1), point) <= 0) corners.pop();
      corners.push(point);
    }
    return corners.slice(0, -1);
  };
  return [...chain(sorted), ...chain(sorted.toReversed())];
}

function ellipseOf(points) {
  const n = points.length;
  const mean = [0, 1].map((c) => points.reduce((sum, p) => sum + p[c], 0) / n);
  const moment = (a, b) => points.reduce((sum, p) => sum + (p[a] - mean[a]) * (p[b] - mean[b]), 0) / (n - 1);
  const [xx, xy, yy] = [moment(0, 0), moment(0, 1), moment(1, 1)];
  // the Cholesky factor of the covariance takes the unit circle to the ellipse
  const a = Math.sqrt(xx);
  const b = a > 0 ? xy / a : 0;
  const c = Math.sqrt(Math.max(yy - b * b, 0));
  const radius = Math.sqrt(5.991); // 95 % of a normal distribution in the plane
  return Array.from({ length: 72 }, (_, k) => {
    const angle = (2 * Math.PI * k) / 72;
    return [
      mean[0] + radius * a * Math.cos(angle),
      mean[1] + radius * (b * Math.cos(angle) + c * Math.sin(angle)),
    ];
  });
}

// the grid over the mean, bent to the shape where the sliders stand
function componentGrid() {
  const { rows, columns } = page.space.grid;
  const nodes = combine(pca.gridMean, pca.gridComponents, slider.at);
  return [gridCloud(nodes, rows, columns).lines({ color: colour("grid"), width: solid ? 2 : 1 }, { meta: "grid" })];
}

// one box for all places of the sliders: nothing jumps
const shapeBoxes = new Map();
function shapeBox() {
  const key = `${slider.shown} ${slider.times}`;
  if (!shapeBoxes.has(key)) {
    const ends = slider.shown.map((k) => extent(scoresOf(k)));
    const corners = ends[0].flatMap((a) => ends[1].map((b) => shapeAt([a, b])));
    shapeBoxes.set(key, boxOf([pca.mean, ...corners]));
  }
  return shapeBoxes.get(key);
}

// of so many landmarks in space, dots are squares and the mean has none: lines begin there, and a
// circle in space takes four times as long to draw
function isDense() {
  return solid && shapes.landmarks.length > MAX_VECTORS;
}

// the shape where the sliders stand, and how its landmarks got there
function changeTraces(points, moved) {
  if (solid && shapes.faces) {
    const cmax = maximum(moved) || 1;
    return [mesh(points, { intensity: moved, colorscale: markScale(), cmin: 0, cmax, showscale: false, meta: "moved" })];
  }
  const paths = new Cloud();
  const ends = new Cloud();
  for (const j of findDisplayedLandmarks()) {
    paths.segment(pca.mean, j, points, j);
    ends.add(points, j, `landmark ${escapeMarkup(shapes.landmarks[j])}<br>${formatNumber(moved[j])} from the mean`);
  }
  const links = showsLinks()
    ? [traceLinks(new Cloud(), points).lines({ color: colour("accent"), width: solid ? 4 : 2 })]
    : [];
  return [
    paths.lines({ color: colour("grid"), width: solid ? 3 : 1.5 }),
    ...links,
    ends.dots(
      { ...(isDense() ? { size: 2.5, symbol: "square" } : { size: solid ? 4 : 8 }), color: colour("accent"), line: { width: 0 } },
      { name: "shape", meta: "moved" },
    ),
  ];
}

function describeShape(moved) {
  const isMoved = slider.at.some((x) => x !== 0);
  const farthest = moved.indexOf(maximum(moved));
  const where = slider.shown
    .filter((k, slot) => !slot || k !== slider.shown[0])
    .map((k, slot) => `${formatNumber(slider.at[slot])} along component ${k + 1}`);
  document.getElementById("shape-status").textContent = isMoved
    ? `The shape at ${where.join(" and ")}${slider.times > 1 ? `, magnified ${slider.times} times` : ""}: ` +
      `it differs from the mean most at landmark ${shapes.landmarks[farthest]}.`
    : "The mean shape. Move a slider, or click a specimen, to see what changes.";
}

// only the cross of the scatter is moved: thousands of dots stay as they are
function moveCross() {
  const plot = document.getElementById("plot-scatter");
  const number = plot.data?.findIndex(({ name }) => name === CROSS) ?? -1;
  if (number >= 0) Plotly.restyle(plot, { x: [[slider.at[0]]], y: [[slider.at[1]]] }, [number]);
}

// two lists to choose components by, and a slider for each, as far as the specimens go
function connectShapeSpace() {
  root.classList.toggle("estimated", allShapes.some(isEstimated));
  const slots = [0, 1].map((slot) => ({
    select: document.getElementById(`component-${slot}`),
    input: document.getElementById(`slider-${slot}`),
    name: document.getElementById(`slider-name-${slot}`),
    ends: document.getElementById(`slider-ends-${slot}`),
  }));
  const update = (slot) => {
    const { input, name, ends } = slots[slot];
    const [low, high] = extent(scoresOf(slider.shown[slot]));
    Object.assign(input, { min: low, max: high, step: (high - low) / 400 || 1 });
    input.value = slider.at[slot];
    name.textContent = componentTitle(slider.shown[slot]);
    ends.textContent = `${formatNumber(low)} to ${formatNumber(high)}, as observed`;
  };
  const moveTo = (at) => {
    slider.at = at;
    [0, 1].forEach(update);
    ["scatter", "shape"].forEach(requestDraw);
  };
  slots.forEach(({ select, input }, slot) => {
    select.append(...pca.shares.map((_, k) => option(k, componentTitle(k))));
    select.value = slider.shown[slot];
    select.addEventListener("change", () => {
      slider.shown[slot] = Number(select.value);
      moveTo([0, 0]);
    });
    input.addEventListener("input", () => {
      slider.at[slot] = Number(input.value);
      if (allShapes.length <= MAX_LIVE_SPECIMENS) moveCross();
      requestDraw("shape");
    });
    input.addEventListener("change", moveCross);
  });
  document.getElementById("to-the-mean").addEventListener("click", () => moveTo([0, 0]));
  for (const input of document.querySelectorAll("input[name=times]")) {
    input.addEventListener("change", () => {
      slider.times = Number(input.value);
      requestDraw("shape");
    });
  }
  const select = document.getElementById("pick-marked");
  select.append(option(-1, "none"), ...shapes.names.map((name, i) => option(i, name)));
  select.addEventListener("change", () => {
    const wanted = Number(select.value);
    mark(wanted < 0 ? state.marked : wanted);
  });
  for (const name of document.querySelectorAll("[data-mark]")) {
    name.addEventListener("click", () => mark(shapes.names.indexOf(name.dataset.mark)));
  }
  markListeners.push(() => {
    select.value = state.marked;
    if (state.marked >= 0) moveTo(slider.shown.map((k) => pca.scores[state.marked][k]));
  });
  [0, 1].forEach(update);
}
