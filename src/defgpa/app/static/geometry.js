// Small helpers of drawing: where points lie on the screen, nothing about shape.

/** The box around points, without what is missing. */
export function box(rows) {
  const low = [Infinity, Infinity, Infinity],
    high = [-Infinity, -Infinity, -Infinity];
  for (const row of rows) {
    if (!hasCoordinates(row)) continue;
    for (let k = 0; k < row.length; k++) {
      low[k] = Math.min(low[k], row[k]);
      high[k] = Math.max(high[k], row[k]);
    }
  }
  return { low, high, isEmpty: low[0] > high[0] };
}

export const hasCoordinates = (row) => row && row[0] !== null && !Number.isNaN(row[0]);

/** x @ matrix + offset. */
export function transform(point, { matrix, offset }) {
  return offset.map((shift, k) => point.reduce((sum, x, i) => sum + x * matrix[i][k], shift));
}

/** Rows of d coordinates out of a flat array. */
export function rowsOf(flat, count, dims, start = 0) {
  const rows = [];
  for (let j = 0; j < count; j++)
    rows.push(Array.from(flat.subarray((start + j) * dims, (start + j + 1) * dims)));
  return rows;
}

/** Draw a marker of a group: circle, square, triangle, diamond, cross, … */
export function markerPath(kind, x, y, r) {
  switch (kind % 6) {
    case 1:
      return `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case 2:
      return `M${x} ${y - 1.2 * r}l${1.15 * r} ${2 * r}h${-2.3 * r}z`;
    case 3:
      return `M${x} ${y - 1.35 * r}l${1.35 * r} ${1.35 * r}l${-1.35 * r} ${1.35 * r}l${-1.35 * r} ${-1.35 * r}z`;
    case 4:
      return `M${x} ${y + 1.2 * r}l${1.15 * r} ${-2 * r}h${-2.3 * r}z`;
    case 5:
      return `M${x - r} ${y - 0.4 * r}h${0.6 * r}v${-0.6 * r}h${0.8 * r}v${0.6 * r}h${0.6 * r}v${0.8 * r}h${-0.6 * r}v${0.6 * r}h${-0.8 * r}v${-0.6 * r}h${-0.6 * r}z`;
    default:
      return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  }
}
