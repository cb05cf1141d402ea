// The view that fits the dimension; three.js is loaded only where there is something in space.

import { View2D } from "./view2d.js";

export async function makeView(container, dims, handlers = {}) {
  if (dims === 2) return new View2D(container, handlers);
  const { View3D } = await import("./view3d.js");
  return new View3D(container, handlers);
}
