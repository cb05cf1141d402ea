// Shape space: where the specimens lie along the components, and the shapes that lie there.

const inSpace = page.space && {
  shares: page.space.shares,
  scores: distances(page.space.scores),
  mean: positions(page.space.mean)[0],
  components: positions(page.space.components),
};

// the two components that are shown, where the sliders stand, how much it is magnified
const along = { shown: [0, inSpace?.shares.length > 1 ? 1 : 0], at: [0, 0], times: 1 };

const scoresOf = (k) => everyShape.map((i) => inSpace.scores[i][k]);
const componentTitle = (k) => `component ${k + 1} (${(100 * inSpace.shares[k]).toPrecision(3)} %)`;

// mean + Σ score · component, its difference from the mean magnified
function shapeAt(scores) {
  const own = Float64Array.from(inSpace.mean);
  along.shown.forEach((k, slot) => {
    if (slot && k === along.shown[0]) return;
    const component = inSpace.components[k];
    for (let c = 0; c < own.length; c++) own[c] += along.times * scores[slot] * component[c];
  });
  return own;
}

const spacePlots = {
  scatter() {
    const [across, up] = along.shown;
    const { kinds, kindOf } = colouring(everyShape);
    const legend = Boolean(grouped()) || kinds.length <= FEW;
    const dots = kinds.map(({ name, colour: color, symbol }, k) => {
      const own = everyShape.filter((i) => kindOf(i) === k);
      return specimenDots(own, { size: 9, color, symbol, opacity: 0.85, line: { width: 0 } }, {
        name: plain(cut(name, 30)),
        showlegend: legend,
      });
    });
    const ring = { size: 17, symbol: "circle-open", color: colour("ink"), line: { width: 1.5 } };
    const odd = page.outliers ? everyShape.filter((i) => page.outliers.odd[i]) : [];
    const rings = odd.length ? [specimenDots(odd, ring, { name: "odd", hoverinfo: "skip" })] : [];
    const marked = state.marked < 0 ? [] : [specimenDots([state.marked], {
      size: 13, color: colour("mark"), line: { width: 2, color: colour("card") },
    }, { name: plain(cut(shapes.names[state.marked], 30)), meta: "marked" })];
    const shown = {
      type: "scatter", mode: "markers", name: "the shape drawn", hoverinfo: "skip",
      x: [along.at[0]], y: [along.at[1]], meta: "shown",
      marker: { symbol: "cross-thin", size: 19, line: { width: 2.5, color: colour("ink") } },
    };
    return {
      data: [...dots, ...rings, ...marked, shown],
      layout: layout({
        margin: { l: 12, r: 12, t: 40, b: 12 },
        xaxis: axis(componentTitle(across), { zeroline: true, zerolinecolor: colour("line"), nticks: 7 }),
        yaxis: axis(componentTitle(up), {
          zeroline: true, zerolinecolor: colour("line"), nticks: 7, scaleanchor: "x",
        }),
        uirevision: `${across},${up}`,
        annotations: named(odd, (i) => inSpace.scores[i][across], (i) => inSpace.scores[i][up], above),
      }),
      buttons: ["zoom2d", "pan2d", "resetScale2d"],
    };
  },

  shape() {
    const own = shapeAt(along.at);
    const far = shapes.landmarks.map((_, j) => between(own, inSpace.mean, j));
    tellShape(far);
    const ends = along.shown.map((k) => extent(scoresOf(k)));
    const corners = ends[0].flatMap((a) => ends[1].map((b) => shapeAt([a, b])));
    const data = [...outlineTraces(inSpace.mean, "mean", true), ...movedTraces(own, far)];
    const made = spaceFigure(data, boxOf([inSpace.mean, ...corners]), {
      showlegend: false,
      uirevision: `${along.shown} ${along.times}`,
    });
    return { ...made, aspect: null }; // as high as the scatter beside it
  },

  ranking() {
    const { distance, fences, odd } = page.outliers;
    const order = [...everyShape].sort((a, b) => distance[b] - distance[a] || a - b);
    const rank = new Map(order.map((i, k) => [i, k + 1]));
    const trace = (own, marker, more) => ({
      type: "scatter",
      mode: "markers",
      x: own.map((i) => rank.get(i)),
      y: own.map((i) => distance[i]),
      text: own.map((i) => `<b>${plain(shapes.names[i])}</b><br>${figure(distance[i])} from the mean`),
      customdata: own,
      hoverinfo: "text",
      marker,
      showlegend: false,
      ...more,
    });
    const data = [
      trace(order.filter((i) => !odd[i]), { size: 8, color: groupColour(0) }),
      trace(order.filter((i) => odd[i]), { size: 10, color: colour("unseen") }, { name: "odd", showlegend: true }),
    ];
    if (state.marked >= 0) {
      data.push(trace([state.marked], { size: 13, color: colour("mark") }, { meta: "marked" }));
    }
    const names = named(order.filter((i) => odd[i]), (i) => rank.get(i), (i) => distance[i], aside);
    return {
      data,
      layout: layout({
        margin: { l: 12, r: 16, t: 40, b: 12 },
        xaxis: axis("rank", { tickformat: "d", rangemode: "tozero", nticks: 9 }),
        yaxis: axis("distance from the mean", { rangemode: "tozero" }),
        dragmode: false,
        shapes: fences.map(({ at }) => ({
          type: "line", xref: "paper", x0: 0, x1: 1, y0: at, y1: at,
          line: { color: colour("ink"), width: 1, dash: "dash" },
        })),
        annotations: [...names, ...fences.slice(0, FEW).map(({ at, group }) => ({
          xref: "paper", x: 1, y: at, xanchor: "right", yanchor: "bottom", showarrow: false,
          text: plain(cut(group ? `fence of ${group}` : "fence", 30)), font: { size: 12 },
        }))],
      }),
    };
  },
};
if (inSpace) Object.assign(plots, spacePlots);

// the names of a few specimens, at their dots, the oddest first; none is written over another
const above = { yanchor: "bottom", yshift: 8 };
const aside = { xanchor: "left", xshift: 8 };
const ROOM = [0.36, 0.06]; // of the picture: what a name takes
function named(own, x, y, where) {
  const ranges = [x, y].map((of) => extent(everyShape.map(of))).map(([low, high]) => high - low || 1);
  const spans = where === above ? ranges.map(() => Math.max(...ranges)) : ranges; // the scatter has one scale
  const apart = (i, j) => [x, y].some((of, c) => Math.abs(of(i) - of(j)) > ROOM[c] * spans[c]);
  const chosen = [];
  for (const i of [...own].sort((a, b) => page.outliers.distance[b] - page.outliers.distance[a])) {
    if (chosen.length < FEW && chosen.every((j) => apart(i, j))) chosen.push(i);
  }
  return chosen.map((i) => ({
    x: x(i), y: y(i), text: plain(cut(shapes.names[i], 20)),
    showarrow: false, font: { color: colour("ink"), size: 12 }, ...where,
  }));
}

function specimenDots(own, marker, more) {
  const [across, up] = along.shown;
  const group = grouped();
  const said = (i) => `<b>${plain(shapes.names[i])}</b>` +
    (group ? `<br>${plain(group[page.columns[state.column].of[i]])}` : "") +
    `<br>${figure(inSpace.scores[i][across])}, ${figure(inSpace.scores[i][up])}`;
  return {
    type: "scatter",
    mode: "markers",
    x: own.map((i) => inSpace.scores[i][across]),
    y: own.map((i) => inSpace.scores[i][up]),
    text: own.map(said),
    customdata: own,
    hoverinfo: "text",
    marker,
    ...more,
  };
}

// the shape where the sliders stand, and how its landmarks got there
function movedTraces(own, far) {
  if (solid && shapes.faces) {
    const text = shapes.landmarks.map((name, j) => `landmark ${plain(name)}<br>${figure(far[j])} from the mean`);
    return [mesh(own, {
      intensity: far, colorscale: markScale(), cmin: 0, cmax: largest(far) || 1, showscale: false,
      text, hoverinfo: "text", meta: "moved",
    })];
  }
  const ways = new Cloud();
  const ends = new Cloud();
  shapes.landmarks.forEach((name, j) => {
    ways.segment(inSpace.mean, j, own, j);
    ends.add(own, j, `landmark ${plain(name)}<br>${figure(far[j])} from the mean`);
  });
  const links = linked()
    ? [edgesOf(new Cloud(), own).lines({ color: colour("accent"), width: solid ? 4 : 2 })]
    : [];
  return [
    ways.lines({ color: colour("grid"), width: solid ? 3 : 1.5 }),
    ...links,
    ends.dots({ size: solid ? 4 : 8, color: colour("accent"), line: { width: 0 } }, { name: "shape", meta: "moved" }),
  ];
}

const extent = (values) => [Math.min(...values), Math.max(...values)];

function tellShape(far) {
  const moved = along.at.some((x) => x !== 0);
  const most = far.indexOf(Math.max(...far));
  const where = along.shown
    .filter((k, slot) => !slot || k !== along.shown[0])
    .map((k, slot) => `${figure(along.at[slot])} along component ${k + 1}`);
  document.getElementById("shape-status").textContent = moved
    ? `The shape at ${where.join(" and ")}${along.times > 1 ? `, magnified ${along.times} times` : ""}: ` +
      `it differs from the mean most at landmark ${shapes.landmarks[most]}.`
    : "The mean shape. Move a slider, or click a specimen, to see what changes.";
}

// two lists to choose components by, and a slider for each, as far as the specimens go
function onSpace() {
  const slots = [0, 1].map((slot) => ({
    select: document.getElementById(`component-${slot}`),
    slider: document.getElementById(`slider-${slot}`),
    name: document.getElementById(`slider-name-${slot}`),
    ends: document.getElementById(`slider-ends-${slot}`),
  }));
  const fitted = (slot) => {
    const { slider, name, ends } = slots[slot];
    const [low, high] = extent(scoresOf(along.shown[slot]));
    Object.assign(slider, { min: low, max: high, step: (high - low) / 400 || 1 });
    slider.value = along.at[slot];
    name.textContent = componentTitle(along.shown[slot]);
    ends.textContent = `${figure(low)} to ${figure(high)}, as observed`;
  };
  const redrawn = () => ["scatter", "shape"].forEach(ask);
  const moveTo = (at) => {
    along.at = at;
    [0, 1].forEach(fitted);
    redrawn();
  };
  slots.forEach(({ select, slider }, slot) => {
    select.append(...inSpace.shares.map((_, k) => option(k, componentTitle(k))));
    select.value = along.shown[slot];
    select.addEventListener("change", () => {
      along.shown[slot] = Number(select.value);
      moveTo([0, 0]);
    });
    slider.addEventListener("input", () => {
      along.at[slot] = Number(slider.value);
      redrawn();
    });
  });
  document.getElementById("to-the-mean").addEventListener("click", () => moveTo([0, 0]));
  for (const input of document.querySelectorAll("input[name=times]")) {
    input.addEventListener("change", () => {
      along.times = Number(input.value);
      ask("shape");
    });
  }
  const select = document.getElementById("pick-marked");
  select.append(option(-1, "none"), ...shapes.names.map((name, i) => option(i, name)));
  select.addEventListener("change", () => {
    const wanted = Number(select.value);
    mark(wanted < 0 ? state.marked : wanted);
  });
  for (const name of document.querySelectorAll("[data-mark]")) {
    const i = shapes.names.indexOf(name.dataset.mark);
    name.disabled = i < 0; // not among the shapes that are drawn
    name.addEventListener("click", () => mark(i));
  }
  marking.push(() => {
    select.value = state.marked;
    if (state.marked >= 0) moveTo(along.shown.map((k) => inSpace.scores[state.marked][k]));
  });
  [0, 1].forEach(fitted);
}
