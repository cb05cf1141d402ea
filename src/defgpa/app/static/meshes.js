// Meshes as typed arrays: {vertices: Float32Array (n, 3), faces: Uint32Array (f, 3)}.

/** Read a mesh as the server packs it: two counts, vertices, faces. */
export function unpackMesh(buffer) {
  const [vertexCount, faceCount] = new Uint32Array(buffer, 0, 2);
  return {
    vertices: new Float32Array(buffer, 8, 3 * vertexCount),
    faces: new Uint32Array(buffer, 8 + 12 * vertexCount, 3 * faceCount),
  };
}

/** Find the corners of the box around a mesh: [low, high]. */
export function findBounds({ vertices }) {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  for (let k = 0; k < vertices.length; k++) {
    const axis = k % 3;
    if (vertices[k] < low[axis]) low[axis] = vertices[k];
    if (vertices[k] > high[axis]) high[axis] = vertices[k];
  }
  return [low, high];
}

/** Find how far the farthest vertex of a mesh is from a point. */
export function findReach({ vertices }, [x, y, z]) {
  let reach = 0;
  for (let k = 0; k < vertices.length; k += 3) {
    const distance = Math.hypot(vertices[k] - x, vertices[k + 1] - y, vertices[k + 2] - z);
    if (distance > reach) reach = distance;
  }
  return reach;
}

/**
 * Choose fewer faces for a mesh, about `maxFaces`, on the vertices that it has.
 *
 * Vertices in one cell of a cubic lattice become the first of them; faces that collapse go.
 */
export function decimate(mesh, maxFaces) {
  const { vertices, faces } = mesh;
  if (faces.length <= 3 * maxFaces) return faces;
  const [low, high] = findBounds(mesh);
  const extents = high.map((x, axis) => x - low[axis]);
  // a closed surface passes through about 3 n² cells of a lattice n wide, with two faces in each
  const cell = Math.max(...extents, 1e-300) / Math.max(2, Math.sqrt(maxFaces / 6));
  const counts = extents.map((extent) => Math.floor(extent / cell) + 1);
  const firstOfCell = new Int32Array(counts[0] * counts[1] * counts[2]).fill(-1);
  const representatives = new Uint32Array(vertices.length / 3);
  for (let vertex = 0; vertex < representatives.length; vertex++) {
    const [x, y, z] = [0, 1, 2].map((axis) =>
      Math.floor((vertices[3 * vertex + axis] - low[axis]) / cell),
    );
    const index = (x * counts[1] + y) * counts[2] + z;
    if (firstOfCell[index] < 0) firstOfCell[index] = vertex;
    representatives[vertex] = firstOfCell[index];
  }
  const remaining = new Uint32Array(faces.length);
  let length = 0;
  for (let k = 0; k < faces.length; k += 3) {
    const a = representatives[faces[k]];
    const b = representatives[faces[k + 1]];
    const c = representatives[faces[k + 2]];
    if (a === b || b === c || a === c) continue;
    remaining.set([a, b, c], length);
    length += 3;
  }
  return remaining.slice(0, length);
}
