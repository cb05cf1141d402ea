// Figures to keep: a chart or a view of the page as SVG and PNG, as it looks.

import { h, showMessage, token } from "./dom.js";

const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
];
const SHARPNESS = 2; // pixels of a PNG for each of the chart

/** Make the buttons that keep a figure; `find` returns a chart (SVG) or a view. */
export function makeSaveButtons(name, find) {
  const button = (text, save) =>
    h(
      "button",
      {
        class: "quiet",
        "aria-label": `Save ${name} as ${text}`,
        "data-save": `${name}.${text.toLowerCase()}`,
        onclick: async () => {
          try {
            downloadBlob(`${name}.${text.toLowerCase()}`, await save(find()));
          } catch (error) {
            showMessage(`The figure cannot be saved: ${error.message}`, "error");
          }
        },
      },
      text,
    );
  return h("span", { class: "save" }, button("SVG", writeSvg), button("PNG", drawPng));
}

function downloadBlob(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function writeSvg(figure) {
  const text = figure instanceof SVGElement ? serialize(figure) : await figure.writeSvg();
  return new Blob([text], { type: "image/svg+xml" });
}

async function drawPng(figure) {
  if (!(figure instanceof SVGElement)) {
    figure.paint(); // what a 3-D view has drawn is gone after the frame
    return toBlob(figure.canvas);
  }
  const { width, height } = figure.viewBox.baseVal;
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(serialize(figure))}`;
  await image.decode();
  const canvas = h("canvas", { width: SHARPNESS * width, height: SHARPNESS * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return toBlob(canvas);
}

const toBlob = (canvas) => new Promise((resolve) => canvas.toBlob(resolve, "image/png"));

/** Return a chart as text, with the styles of the page written into its elements. */
function serialize(chart) {
  const copy = chart.cloneNode(true);
  const originals = [chart, ...chart.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, k) => {
    const style = getComputedStyle(originals[k]);
    for (const name of STYLES) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
  });
  const { width, height } = chart.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width, height, fill: token("--card") }))
    ground.setAttribute(name, value);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** Return an SVG around a picture of a canvas, for what is drawn in pixels. */
export function wrapCanvas(canvas) {
  const { width, height } = canvas;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">` +
    `<image width="${width}" height="${height}" href="${canvas.toDataURL("image/png")}"/></svg>`
  );
}

/** A context that a 2-D view paints on, and that becomes an SVG. */
export class SvgContext {
  constructor(width, height) {
    Object.assign(this, { width, height, parts: [], path: "", dash: [], transforms: [""] });
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1 });
  }

  setTransform() {}
  clearRect() {}

  save() {
    this.transforms.push(this.transforms.at(-1));
  }

  restore() {
    this.transforms.pop();
  }

  translate(x, y) {
    this.transforms.push(`${this.transforms.pop()} translate(${x} ${y})`);
  }

  scale(x, y) {
    this.transforms.push(`${this.transforms.pop()} scale(${x} ${y})`);
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${x} ${y}`;
  }

  lineTo(x, y) {
    this.path += `L${x} ${y}`;
  }

  /** Add a whole circle: views draw no other arcs. */
  arc(x, y, r) {
    this.path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`;
  }

  stroke() {
    this.add("path", { d: this.path, fill: "none", ...this.describeStroke() });
  }

  fill() {
    this.add("path", { d: this.path, fill: this.fillStyle });
  }

  fillText(text, x, y) {
    this.add("text", { x, y, fill: this.fillStyle, ...this.describeFont() }, text);
  }

  strokeText(text, x, y) {
    this.add("text", { x, y, fill: "none", ...this.describeStroke(), ...this.describeFont() }, text);
  }

  drawImage(image) {
    const canvas = h("canvas", { width: image.naturalWidth, height: image.naturalHeight });
    canvas.getContext("2d").drawImage(image, 0, 0);
    const { width, height } = image;
    this.add("image", { width, height, href: canvas.toDataURL("image/jpeg", 0.9) });
  }

  describeStroke() {
    const dash = this.dash.join(" ") || "none";
    return {
      stroke: this.strokeStyle,
      "stroke-width": this.lineWidth,
      "stroke-dasharray": dash,
    };
  }

  describeFont() {
    return { style: `font: ${this.font}`, "dominant-baseline": "middle" };
  }

  add(tag, attributes, text = "") {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (this.globalAlpha < 1) element.setAttribute("opacity", this.globalAlpha);
    if (this.transforms.at(-1)) element.setAttribute("transform", this.transforms.at(-1));
    element.textContent = text;
    this.parts.push(element);
  }

  toString() {
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    picture.setAttribute("width", this.width);
    picture.setAttribute("height", this.height);
    picture.append(...this.parts);
    return new XMLSerializer().serializeToString(picture);
  }
}
