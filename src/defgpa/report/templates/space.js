// Points, lines and surfaces in the plane or in space.
// Where a browser has no WebGL, space is drawn in the plane, as seen from the camera.

function hasWebGL() {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
}

const solid = dim === 3 && hasWebGL();
const flattened = dim === 3 && !solid;
const MAX_DOTS = 15000; // of all shapes together; one shape is always drawn complete
const MAX_SVG_DOTS = 1000; // of one figure; more of them are drawn by WebGL, where there is one
const webGL = hasWebGL();
const dotType = (count) => (solid ? "scatter3d" : scatterType(count));
const scatterType = (count) => (count > MAX_SVG_DOTS && webGL ? "scattergl" : "scatter");

function cross(a, b) {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

const screen = (() => {
  if (!flattened) return null;
  const { eye, up } = page.camera;
  const right = cross(up, eye);
  const size = Math.hypot(...right);
  const across = right.map((x) => x / size);
  return [across, cross(eye, across)];
})();

function place(points, j) {
  const point = Array.from(points.subarray(j * dim, (j + 1) * dim));
  if (!flattened) return point;
  return screen.map((axis) => axis[0] * point[0] + axis[1] * point[1] + axis[2] * point[2]);
}

// places with what belongs to each; a gap ends a line
class Cloud {
  constructor() {
    this.places = [];
    this.texts = [];
    this.owners = [];
    this.values = [];
  }

  add(points, j, text = "", owner = null, value = null) {
    if (!isVisible(points, j)) return;
    this.places.push(place(points, j));
    this.texts.push(text);
    this.owners.push(owner);
    this.values.push(value);
  }

  addOrGap(points, j) {
    if (isVisible(points, j)) this.add(points, j);
    else this.gap();
  }

  segment(from, i, to, j, value = null) {
    if (!isVisible(from, i) || !isVisible(to, j)) return;
    this.add(from, i, "", null, value);
    this.add(to, j, "", null, value);
    this.gap();
  }

  gap() {
    this.places.push([null, null, null]);
    this.texts.push("");
    this.owners.push(null);
    this.values.push(null);
  }

  trace(more) {
    const axes = ["x", "y", "z"].slice(0, solid ? 3 : 2);
    const data = Object.fromEntries(axes.map((axis, k) => [axis, this.places.map((p) => p[k])]));
    return { type: dotType(this.places.length), hoverinfo: "skip", ...data, ...more };
  }

  dots(marker, more = {}) {
    const hover = { text: this.texts, customdata: this.owners, hoverinfo: "text" };
    return this.trace({ mode: "markers", marker, ...hover, ...more });
  }

  lines(line, more = {}) {
    const quiet = { name: "lines", showlegend: false, connectgaps: false };
    return this.trace({ mode: "lines", line, ...quiet, ...more });
  }
}

function traceLinks(cloud, points) {
  for (const [a, b] of shapes.links) cloud.segment(points, a, points, b);
  return cloud;
}

// the corners of all triangles by place, for shapes without missing landmarks
const allCorners = shapes.faces && [0, 1, 2].map((k) => Int32Array.from(shapes.faces, (face) => face[k]));

// a face with a missing corner is left out; the corner has to be somewhere all the same
function mesh(points, more) {
  const isComplete = shapes.landmarks.every((_, j) => isVisible(points, j));
  const faces = isComplete ? null : shapes.faces.filter((face) => face.every((j) => isVisible(points, j)));
  const [i, j, k] = isComplete ? allCorners : [0, 1, 2].map((corner) => faces.map((face) => face[corner]));
  const coordinates = [0, 1, 2].map((axis) =>
    Float64Array.from(shapes.landmarks, (_, v) => (isVisible(points, v) ? points : shapes.reference)[v * dim + axis]),
  );
  const [x, y, z] = coordinates;
  return {
    type: "mesh3d",
    x, y, z, i, j, k,
    hoverinfo: "skip",
    lighting: { ambient: 0.7, diffuse: 0.6, specular: 0.05, roughness: 0.9 },
    ...more,
  };
}

// so many landmarks are skipped that the dots of these shapes stay few enough
const strideOf = (count) =>
  state.every ? 1 : Math.max(1, Math.ceil((count * shapes.landmarks.length) / MAX_DOTS));

// low and high corner of some point sets, as they are drawn
function boxOf(sets) {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  for (const points of sets) {
    for (let j = 0; j * dim < points.length; j++) {
      if (!isVisible(points, j)) continue;
      const at = flattened ? place(points, j) : points.subarray(j * dim, (j + 1) * dim);
      for (let k = 0; k < at.length; k++) {
        if (at[k] < low[k]) low[k] = at[k];
        if (at[k] > high[k]) high[k] = at[k];
      }
    }
  }
  const margin = 0.03 * Math.max(...high.map((x, k) => x - low[k]).filter(Number.isFinite));
  return low.slice(0, flattened ? 2 : dim).map((x, k) => [x - margin, high[k] + margin]);
}

// data in a box, to scale; in the plane the plot is as high as the box wants it to be
function spaceFigure(data, box, more = {}) {
  const drawn = solid ? sceneLayout(box, more) : planeLayout(box, more);
  const sides = box.map(([low, high]) => high - low);
  return { data, layout: drawn, sides, aspect: solid ? null : sides[1] / sides[0], buttons: spaceButtons };
}

const spaceButtons = solid
  ? ["orbitRotation", "pan3d", "zoom3d", "resetCameraDefault3d"]
  : ["zoom2d", "pan2d", "resetScale2d"];

function planeLayout(box, more) {
  const shared = { constrain: "domain", showticklabels: !flattened, nticks: 7 };
  return layout({
    margin: { l: 12, r: 12, t: 36, b: 12 },
    xaxis: axis("", { ...shared, range: box[0] }),
    yaxis: axis("", { ...shared, range: box[1], scaleanchor: "x" }),
    ...more,
  });
}

// so far from a box of these sides that the reference, stretched to it, fills a picture of this aspect
const VIEW = 0.414; // half the height of the picture at distance 1, as plotly has it
const unitReference = (() => {
  const points = Array.from(shapes.landmarks, (_, j) => shapes.reference.subarray(j * dim, (j + 1) * dim));
  const ends = [0, 1, 2].map((k) => points.reduce(([low, high], p) => [Math.min(low, p[k]), Math.max(high, p[k])], [Infinity, -Infinity]));
  return points.map((p) => ends.map(([low, high], k) => (p[k] - (low + high) / 2) / (high - low || 1)));
})();
function viewingDistance(sides, aspect) {
  const { eye, up } = page.camera;
  const right = cross(up, eye);
  const length = Math.hypot(...right);
  const across = right.map((x) => x / length);
  const above = cross(eye, across);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  let far = 0;
  for (const unit of unitReference) {
    const point = unit.map((x, k) => x * sides[k]);
    const half = Math.max(Math.abs(dot(point, above)), Math.abs(dot(point, across)) / aspect);
    far = Math.max(far, half / VIEW + dot(point, eye));
  }
  return far;
}

const scaleSides = (sides) => sides.map((side) => side / Math.max(...sides));

// aspect: the width of the picture over its height
function cameraOf(sides, aspect) {
  const { eye, up } = page.camera;
  const far = viewingDistance(scaleSides(sides), aspect);
  return {
    eye: { x: far * eye[0], y: far * eye[1], z: far * eye[2] },
    up: { x: up[0], y: up[1], z: up[2] },
  };
}

const SCENE_TOP = 30; // room for the legend

function sceneLayout(box, more) {
  const [x, y, z] = scaleSides(box.map(([low, high]) => high - low));
  const hidden = (k) => ({ range: box[k], visible: false });
  return layout({
    margin: { l: 0, r: 0, t: SCENE_TOP, b: 0 },
    scene: {
      aspectmode: "manual",
      aspectratio: { x, y, z },
      dragmode: "orbit",
      xaxis: hidden(0), yaxis: hidden(1), zaxis: hidden(2),
      uirevision: more.uirevision || "kept",
    },
    ...more,
  });
}
