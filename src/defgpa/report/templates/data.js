"use strict";
// The numbers of the page, unpacked from what Python has packed (_packing.py).

const page = JSON.parse(document.getElementById("page-data").textContent);

function buffer(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  return bytes.buffer;
}

// for each shape its coordinates one after the other, NaN where a landmark was not seen
function positions(packed) {
  const [count, points, dim] = packed.size;
  const codes = new Uint16Array(buffer(packed.codes));
  const length = points * dim;
  return Array.from({ length: count }, (_, i) => {
    const own = new Float64Array(length);
    for (let k = 0; k < length; k++) {
      const code = codes[i * length + k];
      const axis = k % dim;
      own[k] = code === 65535 ? NaN : packed.low[i][axis] + code * packed.step[i][axis];
    }
    return own;
  });
}

function rowsOf(values, [count, width]) {
  return Array.from({ length: count }, (_, i) => values.subarray(i * width, (i + 1) * width));
}

const distances = (packed) => rowsOf(new Float32Array(buffer(packed.floats)), packed.size);
const numbers = (packed) => rowsOf(new Int32Array(buffer(packed.whole)), packed.size);
const ifThere = (packed, unpack) => (packed ? unpack(packed) : null);

const dim = page.dim;
const shapes = {
  names: page.names,
  landmarks: page.landmarks,
  reference: positions(page.reference)[0],
  measured: positions(page.measured),
  moved: positions(page.moved),
  aligned: positions(page.aligned),
  predicted: ifThere(page.predicted, positions),
  residuals: distances(page.residuals),
  errors: ifThere(page.errors, distances),
  lattice: positions(page.lattice.nodes),
  edges: ifThere(page.edges, numbers),
  faces: ifThere(page.faces, numbers),
};
const everyShape = shapes.names.map((_, i) => i);

const seen = (points, j) => !Number.isNaN(points[j * dim]);

const largest = (values) => Array.from(values).reduce((most, x) => (x > most ? x : most), 0);

function between(a, b, j) {
  let sum = 0;
  for (let k = j * dim; k < (j + 1) * dim; k++) sum += (a[k] - b[k]) ** 2;
  return Math.sqrt(sum);
}
