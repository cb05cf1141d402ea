// Colours come from the style sheet, so that plots follow it: light, dark, paper.

const touch = window.matchMedia("(pointer: coarse)").matches;
const root = document.documentElement;

const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
const groupColour = (k) => colour(`group-${k % 7}`);

// seven colours that everyone tells apart and five symbols, both changing from group to group, as
// in the plots of the library (palette.py)
const SYMBOLS = ["circle", "square", "diamond", "cross", "x"];
const GLYPHS = ["●", "■", "◆", "✚", "✖"];
const MAX_LOOKS = 7 * SYMBOLS.length;
const lookOf = (k) => ({ colour: groupColour(k), symbol: SYMBOLS[k % SYMBOLS.length] });
const glyphOf = (k) => GLYPHS[k % GLYPHS.length];
// of cells, from the colour of the page on, and of marks, which must not vanish in it
const cellScale = () => [0, 0.33, 0.66, 1].map((at, k) => [at, colour(`error-${k}`)]);
const markScale = () => [[0, colour("error-mark")], ...cellScale().slice(1)];

// a name is text: plotly would read tags and entities in it
const escapeMarkup = (text) =>
  String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// names differ at their ends more often than in the middle
function shorten(text, maxLength) {
  const half = Math.floor(maxLength / 2);
  return text.length > maxLength ? `${text.slice(0, half)}…${text.slice(1 - half)}` : text;
}

// shortened names; without their common beginning where they would not be told apart
function shortenAll(names, maxLength) {
  const short = names.map((name) => shorten(name, maxLength));
  if (new Set(short).size === new Set(names).size) return short;
  const [first, ...others] = names;
  let shared = 0;
  while (shared < first.length && others.every((name) => name[shared] === first[shared])) shared += 1;
  const start = first.slice(0, shared).search(/[^ _.|-]*$/); // whole words only
  return names.map((name) => shorten(start > 1 ? `…${name.slice(start)}` : name, maxLength));
}

function formatNumber(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return String(Math.round(value));
  return size >= 1e-4 || size === 0 ? value.toPrecision(3) : value.toExponential(2);
}

function axis(title, more = {}) {
  return {
    title: title ? { text: title, standoff: 8 } : undefined,
    gridcolor: colour("line"),
    linecolor: colour("line"),
    zeroline: false,
    ticks: "",
    automargin: true,
    exponentformat: "power", // 2×10⁻⁴, not 200µ
    minexponent: 5,
    separatethousands: true,
    ...more,
  };
}

function layout(more) {
  return {
    autosize: true,
    margin: { l: 8, r: 8, t: 8, b: 8 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: colour("font"), size: 13, color: colour("soft") },
    hovermode: "closest",
    hoverlabel: {
      bgcolor: colour("card"),
      bordercolor: colour("line"),
      font: { family: colour("font"), color: colour("ink"), size: 13 },
      align: "left",
    },
    legend: {
      orientation: "h",
      x: 0,
      y: 1.01,
      yanchor: "bottom",
      font: { color: colour("ink") },
      itemsizing: "constant",
    },
    modebar: {
      bgcolor: "rgba(0,0,0,0)",
      color: colour("faint"),
      activecolor: colour("accent"),
    },
    // a finger that scrolls the page must not zoom a plot
    dragmode: touch ? false : "zoom",
    uirevision: "kept",
    ...more,
  };
}

// only buttons that are named here: plotly has one that would send the data away; figures are saved
// by the buttons below them
function config(buttons) {
  const modeBarButtons = [buttons];
  const displayModeBar = buttons.length && !touch ? "hover" : false;
  // plotly draws space with four times the pixels of an ordinary screen, unless it is told not to
  const plotGlPixelRatio = Math.min(2, window.devicePixelRatio);
  return { displaylogo: false, responsive: true, scrollZoom: false, displayModeBar, modeBarButtons, plotGlPixelRatio };
}

const bar = (title) => ({
  title: { text: title, side: "right" },
  thickness: 10,
  len: 0.7,
  outlinewidth: 0,
  tickfont: { size: 11 },
});
