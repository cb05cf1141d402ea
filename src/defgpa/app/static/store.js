// The project as the page knows it: one object, changed here only, told to whoever listens.

import { get, getFloats, post } from "./api.js";
import { showMessage } from "./dom.js";

export const store = {
  project: null, // everything but coordinates, as the server said it
  points: null, // Float32Array (n, m, d): all specimens of the files
  superimposed: null, // Float32Array (n', m', d): those that are analysed
  mean: null, // (m', d)
  distances: null,
  sizes: null,
  queue: null,
  specimen: 0,
  landmark: null,
  edited: null, // the specimen that the last edit was about, with its new place
  problem: "",
};

const REFRESH_DELAY = 400; // milliseconds without an edit until the queue and sizes are asked for again
const listeners = new Set();

/** Call a function after every change; returns how to stop. */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function notifyListeners(change) {
  for (const listener of [...listeners]) listener(change);
}

export const path = (subpath = "") => `/api/projects/${encodeURIComponent(store.project.id)}${subpath}`;
export const hasShapes = () => Boolean(store.project?.names);

let pending = Promise.resolve();

/** Do what replaces the project after all that was asked for before: an older answer never wins. */
function enqueue(work) {
  const result = pending.then(work);
  pending = result.catch(() => {});
  return result;
}

/** Open a project by its id, or the same one again. */
export const openProject = (id) => enqueue(() => loadProject(id));

async function loadProject(id) {
  const project = await get(`/api/projects/${encodeURIComponent(id)}`);
  const isOther =
    store.project?.id !== project.id || String(store.project.names) !== String(project.names);
  store.project = project;
  if (isOther)
    Object.assign(store, {
      specimen: 0,
      landmark: null,
      points: null,
      superimposed: null,
      mean: null,
      queue: null,
      distances: null,
      sizes: null,
    });
  if (project.names) {
    store.points = await getFloats(path("/points"));
    store.specimen = Math.min(store.specimen, project.names.length - 1);
  } else store.points = null;
  notifyListeners("project");
  if (project.names) refreshSuperimposition(); // specimens are shown before it is there
}

let latest = 0;

/** Ask again for what follows from the edits: superimposition, then the queue and sizes. */
export async function refreshSuperimposition() {
  const ticket = ++latest;
  try {
    const [about, superimposed] = await Promise.all([
      get(path("/superimposition")),
      getFloats(path("/superimposed")),
    ]);
    if (ticket !== latest) return;
    Object.assign(store, {
      mean: about.mean,
      distances: about.distances,
      superimposed,
      problem: "",
    });
    store.project.included = about.included;
  } catch (error) {
    if (ticket !== latest) return;
    Object.assign(store, {
      mean: null,
      superimposed: null,
      distances: null,
      sizes: null,
      problem: error.message,
    });
  }
  notifyListeners("superimposition");
  if (store.queue) await new Promise((resolve) => setTimeout(resolve, REFRESH_DELAY));
  await refreshSlowly(ticket, "queue", []);
  await refreshSlowly(ticket, "sizes", null);
}

/** Ask for what takes a while to compute: the queue or sizes; what stands for them if they fail. */
async function refreshSlowly(ticket, name, absent) {
  if (ticket !== latest) return;
  let value = absent;
  try {
    if (store.mean) value = (await get(path(`/${name}`)))[name];
  } catch (error) {
    if (error.status === 409) return refreshSlowly(ticket, name, absent); // stopped by a change
  }
  if (ticket !== latest) return;
  store[name] = value;
  notifyListeners(name);
}

/** The coordinates of one specimen of the files, as arrays. */
export function pointsOf(specimen) {
  const { landmarks, dims } = store.project;
  const m = landmarks.length;
  const rows = [];
  for (let j = 0; j < m; j++) {
    const start = (specimen * m + j) * dims;
    rows.push(Array.from(store.points.subarray(start, start + dims)));
  }
  return rows;
}

/** Send a change of the log; the answer says what is different now. */
const change = (route, body) => enqueue(() => sendChange(route, body));

async function sendChange(route, body) {
  const start = performance.now();
  try {
    const answer = await post(path(route), { revision: store.project.revision, ...body });
    applyChange(answer);
    store.editTime = performance.now() - start;
    return answer;
  } catch (error) {
    if (error.status === 409) await loadProject(store.project.id);
    showMessage(error.message, "error");
    notifyListeners("project");
    return null;
  }
}

function applyChange(answer) {
  const { project } = store;
  Object.assign(project, {
    revision: answer.revision,
    log: answer.log,
    included: answer.included,
    links: answer.links,
  });
  const size = project.landmarks.length * project.dims;
  for (const specimen of answer.specimens) {
    const flat = specimen.points.flat().map((x) => (x === null ? NaN : x));
    store.points.set(flat, specimen.number * size);
    project.missing[specimen.number] = specimen.points.filter((row) => row[0] === null).length;
    store.edited = specimen;
  }
  store.problem = answer.problem ?? "";
  if (answer.mean) store.mean = answer.mean;
  notifyListeners("edit");
  if (answer.reload) openProject(project.id).catch((error) => showMessage(error.message, "error"));
  else refreshSuperimposition();
}

export const edit = (...edits) => change("/edits", { edits });
export const undo = () => change("/undo");
export const redo = () => change("/redo");

/** Change settings of the project; say whether they were taken. */
export const changeSettings = (settings) => enqueue(() => sendSettings(settings));

async function sendSettings(settings) {
  try {
    const project = await post(path("/settings"), { revision: store.project.revision, settings });
    const isReread =
      JSON.stringify(project.settings.reading) !== JSON.stringify(store.project.settings.reading);
    store.project = project;
    if (isReread) await loadProject(project.id);
    else notifyListeners("settings");
    return true;
  } catch (error) {
    if (error.status === 409) await loadProject(store.project.id);
    showMessage(error.message, "error");
    return false;
  }
}

/** What results depend on besides a method: files, how they are read, edits. */
export const nameState = () => {
  const { log, settings, files } = store.project;
  return JSON.stringify([log.edits.map(({ text }) => text), settings.reading, files]);
};

/** Show another specimen, and one of its landmarks. */
export function choose(specimen, landmark = null) {
  store.specimen = specimen;
  store.landmark = landmark;
  notifyListeners("choice");
}

export const isIncluded = (specimen) => store.project.included[0].includes(specimen);
export const isLandmarkIncluded = (landmark) => store.project.included[1].includes(landmark);
