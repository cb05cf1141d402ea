"use strict";
// The numbers of the page, unpacked from what Python has packed (_encoding.py).

const page = JSON.parse(document.getElementById("page-data").textContent);

function buffer(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  return bytes.buffer;
}

// for each shape its coordinates one after the other, NaN where a landmark is missing
function positions(packed) {
  const [count, nPoints, dim] = packed.size;
  const codes = new Uint16Array(buffer(packed.codes));
  const length = nPoints * dim;
  return Array.from({ length: count }, (_, i) => {
    const points = new Float64Array(length);
    for (let k = 0; k < length; k++) {
      const code = codes[i * length + k];
      const axis = k % dim;
      points[k] = code === 65535 ? NaN : packed.low[i][axis] + code * packed.step[i][axis];
    }
    return points;
  });
}

function rowsOf(values, [count, width]) {
  return Array.from({ length: count }, (_, i) => values.subarray(i * width, (i + 1) * width));
}

const distances = (packed) => rowsOf(new Float32Array(buffer(packed.floats)), packed.size);
const numbers = (packed) => rowsOf(new Int32Array(buffer(packed.whole)), packed.size);
const unpackOptional = (packed, unpack) => (packed ? unpack(packed) : null);

const dim = page.dim;
const shapes = {
  names: page.names,
  landmarks: page.landmarks,
  reference: positions(page.reference)[0],
  moved: positions(page.moved),
  aligned: positions(page.aligned),
  predicted: unpackOptional(page.predicted, positions),
  residuals: distances(page.residuals),
  weights: unpackOptional(page.weights, distances),
  errors: unpackOptional(page.errors, distances),
  lattice: positions(page.lattice.nodes),
  links: unpackOptional(page.links, numbers),
  faces: unpackOptional(page.faces, numbers),
};
const allShapes = shapes.names.map((_, i) => i);
const shortNames = shortenAll(shapes.names, 20);

// as measured: every shape taken back from the pose of the reference, when it is first asked for
const poses = distances(page.poses);
function getMeasuredPoints(i) {
  const matrix = poses[i].subarray(0, dim * dim);
  const shift = poses[i].subarray(dim * dim);
  const moved = shapes.moved[i];
  return Float64Array.from(moved, (_, k) => {
    const start = k - (k % dim);
    let sum = shift[k % dim];
    for (let axis = 0; axis < dim; axis++) sum += moved[start + axis] * matrix[axis * dim + (k % dim)];
    return sum;
  });
}
Object.defineProperty(shapes, "measured", {
  configurable: true,
  get() {
    const measured = allShapes.map(getMeasuredPoints);
    Object.defineProperty(shapes, "measured", { value: measured });
    return measured;
  },
});

const isVisible = (points, j) => !Number.isNaN(points[j * dim]);

const maximum = (values) => Array.from(values).reduce((largest, x) => (x > largest ? x : largest), 0);

function distanceBetween(a, b, j) {
  let sum = 0;
  for (let k = j * dim; k < (j + 1) * dim; k++) sum += (a[k] - b[k]) ** 2;
  return Math.sqrt(sum);
}
