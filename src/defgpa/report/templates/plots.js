// What each plot in space shows, from the state of the controls: data and layout for plotly.

const state = {
  selected: new Set(allShapes),
  marked: -1, // no shape
  column: page.columns.length ? 0 : -1, // -1: every specimen has its own look
  every: false, // landmarks are drawn, however many dots that makes
  labels: false,
  links: page.links !== null,
  shown: "aligned",
  colour: "shape",
  before: "moved",
  pair: -1, // all shapes
  deformation: 0,
  how: dim === 2 ? "grid" : "vectors",
  distances: "residuals",
  order: "given",
  outline: "hull",
  change: dim === 2 ? "grid" : "lines",
};

const MAX_LEGEND = 7; // kinds that a legend names
const MAX_LINKED_SHAPES = 12; // shapes whose links are drawn
const MAX_SURFACES = 12; // meshes that are drawn over each other
const MAX_VECTORS = solid ? 800 : 1500; // in space, so that a change is drawn in a tenth of a second without a graphics card
const MAX_LABELS = solid ? 160 : 600;

// the kinds of shapes among the chosen ones, each with its name and look
function colouring(chosen) {
  const { of, names } = classes(chosen);
  const single = chosen.length === 1;
  const kinds = single ? [of(chosen[0])] : names.map((_, k) => k);
  const nameOf = (k) => (single ? shapes.names[chosen[0]] : names[k]);
  return {
    kinds: kinds.map((k) => ({ name: nameOf(k), ...lookOf(k) })),
    kindOf: (i) => kinds.indexOf(of(i)),
    number: of,
  };
}

const groupNames = () => page.columns[state.column]?.names;

// by group; or, while looks last, one look a shape, which it keeps when others are left out
function classes(chosen) {
  const column = page.columns[state.column];
  if (column?.names) return { of: (i) => column.of[i], names: column.names };
  if (allShapes.length <= MAX_LOOKS) return { of: (i) => i, names: shapes.names };
  if (chosen.length <= MAX_LOOKS) {
    return { of: (i) => chosen.indexOf(i), names: chosen.map((i) => shapes.names[i]) };
  }
  return { of: () => 0, names: ["shapes"] };
}

const describePoint = (i, j, far) =>
  `<b>${escapeMarkup(shapes.names[i])}</b><br>landmark ${escapeMarkup(shapes.landmarks[j])}` +
  (far === undefined ? "" : `<br>${formatNumber(far)} from the reference`);

function eachDot(chosen, points, visit) {
  const stride = strideOf(chosen.length);
  chosen.forEach((i, k) => {
    // staggered, so that every landmark is drawn in some shapes
    for (let j = k % stride; j < shapes.landmarks.length; j += stride) {
      if (isVisible(points[i], j)) visit(i, j);
    }
  });
}

function dotLook(count) {
  const many = count * shapes.landmarks.length > 3000;
  const size = solid ? (many ? 2.6 : 3.4) : many ? 3.5 : 5;
  return { size, opacity: many ? 0.5 : count > 3 ? 0.65 : 0.95, line: { width: 0 } };
}

function dotsByShape(chosen, points, far) {
  const { kinds, kindOf } = colouring(chosen);
  const clouds = kinds.map(() => new Cloud());
  eachDot(chosen, points, (i, j) => clouds[kindOf(i)].add(points[i], j, describePoint(i, j, far?.[i][j]), i));
  const look = dotLook(chosen.length);
  const showlegend = Boolean(groupNames()) || kinds.length <= MAX_LEGEND;
  const total = clouds.reduce((sum, cloud) => sum + cloud.places.length, 0);
  const traces = clouds.map((cloud, k) => {
    const { name, colour: color, symbol } = kinds[k];
    const more = { type: dotType(total), name: escapeMarkup(shorten(name, 30)), showlegend };
    return cloud.dots({ ...look, color, symbol }, more);
  });
  const shown = traces.filter((_, k) => clouds[k].places.length || showlegend);
  return [...shown, ...makeRejectedDots(chosen, points, far), ...makeMarkedDots(chosen, points, far)];
}

// the landmarks that a robust fit left out
function makeRejectedDots(chosen, points, far) {
  if (!shapes.weights) return [];
  const cloud = new Cloud();
  for (const i of chosen) {
    shapes.landmarks.forEach((_, j) => {
      if (isVisible(points[i], j) && shapes.weights[i][j] === 0) cloud.add(points[i], j, `${describePoint(i, j, far?.[i]?.[j])}<br>left out`, i);
    });
  }
  if (!cloud.places.length) return [];
  const marker = { symbol: "x", size: solid ? 5 : 9, color: colour("missing") };
  return [cloud.dots(marker, { name: "left out", showlegend: true })];
}

// the shape that the reader has marked, among others
function makeMarkedDots(chosen, points, far) {
  const i = state.marked;
  if (i < 0 || chosen.length < 2) return [];
  const cloud = new Cloud();
  shapes.landmarks.forEach((_, j) => cloud.add(points[i], j, describePoint(i, j, far?.[i]?.[j]), i));
  const marker = {
    size: solid ? 5 : 8,
    color: colour("mark"),
    line: { width: 1, color: colour("card") },
  };
  return [cloud.dots(marker, { name: escapeMarkup(shorten(shapes.names[i], 30)), meta: "marked" })];
}

function dotsByError(chosen, points, far) {
  const cloud = new Cloud();
  eachDot(chosen, points, (i, j) => cloud.add(points[i], j, describePoint(i, j, far[i][j]), i, far[i][j]));
  const largest = maximum(cloud.values) || 1;
  const base = dotLook(chosen.length).size;
  const marker = {
    size: cloud.values.map((value) => base * (0.8 + (1.6 * value) / largest)),
    color: cloud.values,
    colorscale: markScale(),
    cmin: 0,
    cmax: largest,
    showscale: true,
    colorbar: bar("distance"),
    line: { width: 0 },
  };
  const dots = cloud.dots(marker, { name: "shapes", showlegend: false });
  return [dots, ...makeMarkedDots(chosen, points, far)];
}

const showsLinks = () => state.links && shapes.links;

function linkTraces(chosen, points) {
  if (!showsLinks() || chosen.length > MAX_LINKED_SHAPES) return [];
  const { kinds, kindOf } = colouring(chosen);
  return chosen.map((i) => {
    const line = { color: kinds[kindOf(i)].colour, width: 1 };
    return traceLinks(new Cloud(), points[i]).lines(line, { opacity: 0.6 });
  });
}

function linkAndLabelTraces(points, faint) {
  const traces = [];
  if (showsLinks()) {
    const line = { color: colour("ink"), width: solid ? 3 : 1.2 };
    traces.push(traceLinks(new Cloud(), points).lines(line, { opacity: faint ? 0.25 : 0.55 }));
  }
  if (state.labels) traces.push(labelTrace(points));
  return traces;
}

// a shape that others are seen against: its links, its surface or its dots, its labels
function outlineTraces(points, name, faint = false) {
  const traces = linkAndLabelTraces(points, faint);
  if (solid && shapes.faces) {
    return [...traces, mesh(points, { color: colour("surface"), opacity: faint ? 0.15 : 0.75 })];
  }
  const cloud = new Cloud();
  for (const j of faint ? findDisplayedLandmarks() : shapes.landmarks.keys()) {
    cloud.add(points, j, `<b>${name}</b><br>landmark ${escapeMarkup(shapes.landmarks[j])}`);
  }
  const marker = {
    size: solid ? (faint ? 3.5 : shapes.landmarks.length > 200 ? 4.2 : 5) : faint ? 9 : 4.5,
    color: colour(faint ? "soft" : "ink"),
    opacity: faint && solid ? 0.5 : 1,
    symbol: faint && !solid ? "circle-open" : "circle",
    // a rim, or the dots of the shapes around it would hide it in space
    line: { width: faint === solid ? 0 : 1, color: colour(solid ? "card" : "soft") },
  };
  traces.push(cloud.dots(marker, { name }));
  return traces;
}

const referenceTraces = (faint) => outlineTraces(shapes.reference, "reference", faint);

// of very many, evenly some: letters in space are slow
function labelTrace(points) {
  const cloud = new Cloud();
  const stride = Math.ceil(shapes.landmarks.length / MAX_LABELS);
  for (let j = 0; j < shapes.landmarks.length; j += stride) {
    cloud.add(points, j, escapeMarkup(shorten(shapes.landmarks[j], 18)));
  }
  return cloud.trace({
    mode: "text",
    text: cloud.texts,
    textposition: "top center",
    textfont: { size: 11, color: colour("ink") },
    name: "labels",
    showlegend: false,
  });
}

// one shape of a mesh: its surface, coloured by a distance
function surface(points, i, far, title, largest) {
  const relation = title === "distance" ? "from the reference" : "moved";
  const text = shapes.landmarks.map((_, j) => describePoint(i, j) + `<br>${formatNumber(far[j])} ${relation}`);
  return mesh(points, {
    intensity: Array.from(far, (x) => x || 0),
    colorscale: markScale(),
    cmin: 0,
    cmax: largest || maximum(far) || 1,
    colorbar: bar(title),
    text,
    hoverinfo: "text",
  });
}

const distancesBefore = (i) =>
  shapes.landmarks.map((_, j) => distanceBetween(shapes.moved[i], shapes.reference, j));

const showsSurfaces = (chosen) => solid && shapes.faces && chosen.length <= MAX_SURFACES;
const isSingleMesh = (chosen) => solid && shapes.faces && chosen.length === 1;

function makeReferenceOverlay(chosen, points, far, byError, largest) {
  if (isSingleMesh(chosen)) {
    const [i] = chosen;
    return [...referenceTraces(true), surface(points[i], i, far[i], "distance", largest)];
  }
  if (showsSurfaces(chosen) && !byError) {
    return [...referenceTraces(true), ...translucentSurfaces(chosen, points)];
  }
  const dots = byError ? dotsByError : dotsByShape;
  return [...linkTraces(chosen, points), ...dots(chosen, points, far), ...referenceTraces()];
}

// few meshes over each other, each in its colour
function translucentSurfaces(chosen, points) {
  const { kinds, kindOf } = colouring(chosen);
  const opacity = Math.min(0.5, 0.9 / chosen.length);
  return chosen.map((i) => mesh(points[i], {
    color: i === state.marked ? colour("mark") : kinds[kindOf(i)].colour,
    opacity: i === state.marked ? 0.7 : opacity,
    name: escapeMarkup(shorten(shapes.names[i], 30)),
    hoverinfo: "name",
  }));
}

const plots = {
  reference() {
    const chosen = [...state.selected].sort((a, b) => a - b);
    const left = state.shown === "predicted";
    const points = left ? shapes.predicted : shapes.aligned;
    const far = left ? shapes.errors : shapes.residuals;
    const data = makeReferenceOverlay(chosen, points, far, state.colour === "error");
    return spaceFigure(data, box(state.shown));
  },

  before() {
    const chosen = state.pair < 0 ? allShapes : [state.pair];
    const points = shapes[state.before];
    if (state.before === "measured") {
      const data = isSingleMesh(chosen)
        ? [mesh(points[chosen[0]], { color: groupColour(0) })]
        : showsSurfaces(chosen)
          ? translucentSurfaces(chosen, points)
          : [...linkTraces(chosen, points), ...dotsByShape(chosen, points)];
      const drawing = spaceFigure(data, box("measured"), { ...pairLegend(), uirevision: "measured" });
      return { ...drawing, aspect: pairFigure([]).aspect };
    }
    const far = allShapes.map((i) => (chosen.includes(i) ? distancesBefore(i) : null));
    return pairFigure(makeReferenceOverlay(chosen, points, far, false));
  },

  after() {
    const chosen = state.pair < 0 ? allShapes : [state.pair];
    // of one mesh, in the colours of the picture before
    const largest = isSingleMesh(chosen) ? maximum(distancesBefore(chosen[0])) : undefined;
    return pairFigure(makeReferenceOverlay(chosen, shapes.aligned, shapes.residuals, false, largest));
  },

  deformation() {
    const i = state.deformation;
    const travelled = shapes.landmarks.map((_, j) => distanceBetween(shapes.moved[i], shapes.aligned[i], j));
    describeDeformation(i, travelled);
    const data = state.how === "grid" ? gridTraces(i) : vectorTraces(i, travelled);
    return spaceFigure(data, state.how === "grid" ? box("aligned", "lattice") : box("moved", "aligned"));
  },
};

// one box for all shapes: nothing jumps when another one is chosen
const boxes = new Map();
function box(...kinds) {
  const key = kinds.join();
  if (!boxes.has(key)) {
    const reference = key === "measured" ? [] : [shapes.reference];
    boxes.set(key, boxOf([...reference, ...kinds.flatMap((kind) => shapes[kind])]));
  }
  return boxes.get(key);
}

const pairLegend = () => ({ showlegend: Boolean(groupNames()) || state.marked >= 0 });
const pairFigure = (data) => spaceFigure(data, box("moved", "aligned"), pairLegend());

// every second row and column of the nodes is a line
function gridCloud(nodes, rows, columns) {
  const cloud = new Cloud();
  for (let r = 0; r < rows; r += 2) {
    for (let c = 0; c < columns; c++) cloud.addOrGap(nodes, r * columns + c);
    cloud.gap();
  }
  for (let c = 0; c < columns; c += 2) {
    for (let r = 0; r < rows; r++) cloud.addOrGap(nodes, r * columns + c);
    cloud.gap();
  }
  return cloud;
}

function gridTraces(i) {
  const { rows, columns } = page.lattice;
  const cloud = gridCloud(shapes.lattice[i], rows, columns);
  const line = { color: colour("grid"), width: solid ? 2 : 1.2 };
  return [
    cloud.lines(line, { showlegend: true, name: solid || flattened ? "slice" : "grid" }),
    ...makeFaintReference(i),
  ];
}

function makeFaintReference(i) {
  if (solid && shapes.faces) return [mesh(shapes.aligned[i], { color: groupColour(0), opacity: 0.3 })];
  return [
    ...referenceTraces(true),
    ...linkTraces([i], shapes.aligned),
    ...dotsByShape([i], shapes.aligned, shapes.residuals),
  ];
}

// evenly some of very many
function findDisplayedLandmarks() {
  const stride = Math.ceil(shapes.landmarks.length / MAX_VECTORS);
  return shapes.landmarks.map((_, j) => j).filter((j) => j % stride === 0);
}

function vectorTraces(i, travelled) {
  if (solid && shapes.faces) {
    const before = mesh(shapes.moved[i], { color: colour("surface"), opacity: 0.3 });
    return [before, surface(shapes.aligned[i], i, travelled, "moved by")];
  }
  const from = shapes.moved[i];
  const to = shapes.aligned[i];
  const lines = new Cloud();
  const ends = new Cloud();
  for (const j of findDisplayedLandmarks()) {
    lines.segment(from, j, to, j, travelled[j]);
    const text = `${describePoint(i, j)}<br>moved by ${formatNumber(travelled[j])}`;
    ends.add(to, j, text, i, travelled[j]);
  }
  const shade = { colorscale: markScale(), cmin: 0, cmax: maximum(travelled) || 1 };
  const line = solid
    ? { width: 4, color: lines.values.map((x) => x ?? 0), ...shade }
    : { width: 1.6, color: colour("grid") };
  const marker = {
    size: solid ? 3 : 7,
    color: ends.values,
    ...shade,
    showscale: true,
    colorbar: bar("moved by"),
    line: { width: 0 },
  };
  return [
    ...linkTraces([i], shapes.aligned),
    lines.lines(line),
    ends.dots(marker, { name: "landmarks", showlegend: false }),
  ];
}

function describeDeformation(i, travelled) {
  const visible = travelled.map((x, j) => [x, j]).filter(([x]) => x >= 0);
  const [largest, j] = visible.reduce((a, b) => (b[0] > a[0] ? b : a));
  const mean = visible.reduce((sum, [x]) => sum + x, 0) / visible.length;
  document.getElementById("deformation-status").textContent =
    `${shapes.names[i]}: its warp moves the landmarks by ${formatNumber(mean)} on average, ` +
    `most at ${shapes.landmarks[j]}, by ${formatNumber(largest)}.`;
}
