// Columns of the table of covariates: which make groups, which are a scale, and their colours.

import { groupColour, token } from "./dom.js";
import { store } from "./store.js";

export const MAX_GROUPS = 12; // more are neither told apart by marker and colour, nor outlined
export const SIZE = ":size"; // stands for centroid size beside the names of columns

export const listColumns = () => Object.keys(store.project.columns);

/** The values of a column for the specimens that are analysed. */
export function valuesOf(column) {
  const values = column === SIZE ? (store.sizes ?? []) : store.project.columns[column];
  return store.project.included[0].map((i) => values?.[i] ?? null);
}

const nameLevel = (value) => (value === null ? "" : String(value));

/** The different values of a column as words, in order. */
export function levelsOf(column) {
  return [...new Set(valuesOf(column).map(nameLevel))].sort((a, b) =>
    a.localeCompare(b, undefined, { numeric: true }),
  );
}

/** Whether a column puts the specimens into a few groups. */
export function isGrouping(column) {
  const count = levelsOf(column).length;
  return count > 1 && count <= Math.min(MAX_GROUPS, store.project.included[0].length / 2);
}

/** The column to begin with: one called group, or the first that makes groups. */
export function chooseGrouping() {
  const groupings = listColumns().filter(isGrouping);
  return groupings.includes("group") ? "group" : (groupings[0] ?? "");
}

/** A column as a formula calls it. */
export const quote = (name) => (/^[A-Za-z_][\w.]*$/.test(name) ? name : `\`${name}\``);

/** A column as a formula makes groups of it: numbers are a covariate without C(…). */
export function nameFactor(column) {
  const hasNumbers = valuesOf(column).some((value) => typeof value === "number");
  return hasNumbers ? `C(${quote(column)})` : quote(column);
}

/** Whether a column has so many numbers that they are a scale, not groups. */
function isScale(column) {
  const values = valuesOf(column).filter((value) => value !== null);
  const areNumbers = values.length > 0 && values.every((value) => typeof value === "number");
  return areNumbers && new Set(values).size > MAX_GROUPS;
}

/**
 * How a column is drawn: the colour and the level of every specimen, and what the legend needs.
 *
 * Of groups `levels`, of a scale `range`; without a column all specimens look the same.
 */
export function encode(column) {
  const values = column ? valuesOf(column) : store.project.included[0].map(() => null);
  if (!column)
    return { colours: values.map(() => groupColour(0)), numbers: values.map(() => 0), levels: [] };
  if (isScale(column)) {
    const known = values.filter((value) => value !== null);
    const range = [Math.min(...known), Math.max(...known)];
    const colour = makeRamp(...range);
    return { colours: values.map(colour), numbers: values.map(() => 0), levels: [], range };
  }
  const levels = levelsOf(column);
  const numbers = values.map((value) => levels.indexOf(nameLevel(value)));
  return { colours: numbers.map(groupColour), numbers, levels };
}

/** A function from values to colours of the scale; what is not known is grey. */
function makeRamp(low, high) {
  const stops = [0, 1, 2].map((k) =>
    [1, 3, 5].map((at) => Number.parseInt(token(`--ramp-${k}`).slice(at, at + 2), 16)),
  );
  return (value) => {
    if (value === null) return token("--faint");
    const t = (2 * (value - low)) / (high - low || 1),
      k = Math.min(1, Math.floor(t));
    const mixed = stops[k].map((x, c) => Math.round(x + (t - k) * (stops[k + 1][c] - x)));
    return `rgb(${mixed.join(" ")})`;
  };
}
