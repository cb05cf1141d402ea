// Points, lines and surfaces in the plane or in space.
// Where a browser has no WebGL, space is drawn in the plane, as seen from the camera.

function hasWebGL() {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
}

const solid = dim === 3 && hasWebGL();
const flattened = dim === 3 && !solid;
const MOST_DOTS = 15000; // of all shapes together; one shape is always drawn complete
const PLAIN_DOTS = 4000; // more of them are drawn by WebGL

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
  const own = Array.from(points.subarray(j * dim, (j + 1) * dim));
  if (!flattened) return own;
  return screen.map((axis) => axis[0] * own[0] + axis[1] * own[1] + axis[2] * own[2]);
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
    if (!seen(points, j)) return;
    this.places.push(place(points, j));
    this.texts.push(text);
    this.owners.push(owner);
    this.values.push(value);
  }

  addOrGap(points, j) {
    if (seen(points, j)) this.add(points, j);
    else this.gap();
  }

  segment(from, i, to, j, value = null) {
    if (!seen(from, i) || !seen(to, j)) return;
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
    const own = Object.fromEntries(axes.map((axis, k) => [axis, this.places.map((p) => p[k])]));
    const many = this.places.length > PLAIN_DOTS ? "scattergl" : "scatter";
    return { type: solid ? "scatter3d" : many, hoverinfo: "skip", ...own, ...more };
  }

  dots(marker, more = {}) {
    const own = { text: this.texts, customdata: this.owners };
    return this.trace({ mode: "markers", marker, ...own, hoverinfo: "text", ...more });
  }

  lines(line, more = {}) {
    const quiet = { name: "lines", showlegend: false, connectgaps: false };
    return this.trace({ mode: "lines", line, ...quiet, ...more });
  }
}

function edgesOf(cloud, points) {
  for (const [a, b] of shapes.edges) cloud.segment(points, a, points, b);
  return cloud;
}

// a face with a corner that was not seen is left out; the corner has to be somewhere all the same
function mesh(points, more) {
  const faces = shapes.faces.filter((face) => face.every((j) => seen(points, j)));
  const corner = (k) => faces.map((face) => face[k]);
  const along = (k) =>
    shapes.landmarks.map((_, j) => (seen(points, j) ? points : shapes.reference)[j * dim + k]);
  return {
    type: "mesh3d",
    x: along(0), y: along(1), z: along(2),
    i: corner(0), j: corner(1), k: corner(2),
    hoverinfo: "skip",
    lighting: { ambient: 0.7, diffuse: 0.6, specular: 0.05, roughness: 0.9 },
    ...more,
  };
}

// so many landmarks are skipped that the dots of these shapes stay few enough
const strideOf = (count) =>
  state.every ? 1 : Math.max(1, Math.ceil((count * shapes.landmarks.length) / MOST_DOTS));

// low and high corner of some point sets, as they are drawn
function boxOf(sets) {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  for (const points of sets) {
    for (let j = 0; j * dim < points.length; j++) {
      if (!seen(points, j)) continue;
      place(points, j).forEach((x, k) => {
        low[k] = Math.min(low[k], x);
        high[k] = Math.max(high[k], x);
      });
    }
  }
  const margin = 0.03 * Math.max(...high.map((x, k) => x - low[k]).filter(Number.isFinite));
  return low.slice(0, flattened ? 2 : dim).map((x, k) => [x - margin, high[k] + margin]);
}

// data in a box, to scale; in the plane the plot is as high as the box wants it to be
function spaceFigure(data, box, more = {}) {
  const drawn = solid ? sceneLayout(box, more) : planeLayout(box, more);
  const sides = box.map(([low, high]) => high - low);
  return { data, layout: drawn, aspect: solid ? null : sides[1] / sides[0], buttons: spaceButtons };
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

function sceneLayout(box, more) {
  const sides = box.map(([low, high]) => high - low);
  const [x, y, z] = sides.map((side) => side / Math.max(...sides));
  const { eye, up } = page.camera;
  const far = 0.92 * Math.hypot(x, y, z);
  const own = (k) => ({ range: box[k], visible: false });
  return layout({
    margin: { l: 0, r: 0, t: 30, b: 0 },
    scene: {
      aspectmode: "manual",
      aspectratio: { x, y, z },
      dragmode: "orbit",
      xaxis: own(0), yaxis: own(1), zaxis: own(2),
      camera: {
        eye: { x: far * eye[0], y: far * eye[1], z: far * eye[2] },
        up: { x: up[0], y: up[1], z: up[2] },
      },
      uirevision: more.uirevision || "kept",
    },
    ...more,
  });
}
