// The page: a bar with the steps of a study, and one step at a time below it.

import { get } from "./api.js";
import { fill, h, showMessage } from "./dom.js";
import { hasShapes, listen, openProject, redo, store, notifyListeners, undo } from "./store.js";
import { showAlign } from "./align.js";
import { showExplore } from "./explore.js";
import { showOpen } from "./open.js";
import { showSpecimens } from "./specimens.js";
import { showTakeAway } from "./take_away.js";
import { showTest } from "./test.js";

const STEPS = [
  ["open", "Open", showOpen],
  ["look", "Look", (main) => showSpecimens(main, false)],
  ["correct", "Correct", (main) => showSpecimens(main, true)],
  ["align", "Align", showAlign],
  ["explore", "Explore", showExplore],
  ["test", "Test", showTest],
  ["take-away", "Take away", showTakeAway],
];

const COMPUTED = ["align", "explore", "test", "take-away"]; // steps that show what was computed

let leave = null; // how the step that is shown ends
let shown = "",
  revision = "", // of the project when the step was drawn
  visits = 0;
const main = document.getElementById("main"),
  bar = document.getElementById("bar");

/** The address says which project and step: #wings/look. */
function readAddress() {
  const [id, step] = decodeURIComponent(location.hash.slice(1)).split("/");
  return { id: id || null, step: STEPS.some(([name]) => name === step) ? step : "open" };
}

export function go(step, id = store.project?.id) {
  location.hash = id ? `${encodeURIComponent(id)}/${step}` : "";
}

async function showStep() {
  const ticket = ++visits;
  const { id, step } = readAddress();
  try {
    if (id && store.project?.id !== id) await openProject(id);
    if (!id) store.project = null;
  } catch (error) {
    showMessage(error.message, "error");
    location.hash = "";
    return;
  }
  if (ticket !== visits) return; // the address has changed meanwhile
  const chosen = id && (step === "open" || hasShapes()) ? step : "open";
  shown = chosen;
  revision = store.project?.revision ?? "";
  leave?.();
  drawBar();
  const hadFocus = main.contains(document.activeElement);
  main.replaceChildren();
  if (hadFocus) main.focus({ preventScroll: true });
  document.title = store.project ? `${store.project.title} – defgpa` : "defgpa";
  try {
    localStorage.setItem("defgpa-place", location.hash);
  } catch {
    /* private windows */
  }
  leave = null;
  const left = await STEPS.find(([name]) => name === chosen)[2](main, { go });
  if (ticket !== visits) {
    left?.();
    return;
  }
  leave = left ?? null;
  document.documentElement.dataset.ready = chosen;
}

function drawBar() {
  const isOpen = hasShapes();
  const log = store.project?.log;
  fill(
    bar,
    h(
      "button",
      {
        class: "brand",
        onclick: () => {
          location.hash = "";
        },
        title: "All projects",
      },
      h("img", { src: "/static/icon.svg", alt: "" }),
      "defgpa",
    ),
    h("span", { class: "title", title: store.project?.title ?? "" }, store.project?.title ?? ""),
    h(
      "nav",
      { "aria-label": "Steps of the study" },
      STEPS.map(([name, text]) =>
        h(
          "button",
          {
            "aria-current": name === shown ? "page" : null,
            disabled: name !== "open" && !isOpen,
            id: `step-${name}`,
            onclick: () => go(name),
          },
          text,
          name === "correct" && isOpen && store.queue?.length
            ? h(
                "span",
                { class: "count", "aria-label": `${store.queue.length} findings` },
                store.queue.length,
              )
            : null,
        ),
      ),
    ),
    h(
      "div",
      { class: "tools" },
      h(
        "button",
        {
          class: "icon",
          title: log?.edits.length ? `Undo: ${log.edits.at(-1).text}` : "Undo",
          "aria-label": "Undo",
          disabled: !log?.edits.length,
          id: "undo",
          onclick: undo,
        },
        "↶",
      ),
      h(
        "button",
        {
          class: "icon",
          title: log?.undone.length ? `Redo: ${log.undone.at(-1)}` : "Redo",
          "aria-label": "Redo",
          disabled: !log?.undone.length,
          id: "redo",
          onclick: redo,
        },
        "↷",
      ),
      h(
        "button",
        {
          class: "icon",
          title: "Light or dark",
          "aria-label": "Light or dark",
          onclick: toggleTheme,
        },
        "◐",
      ),
      h("button", { class: "icon", title: "Keys", "aria-label": "Keys", onclick: showKeys }, "?"),
    ),
  );
}

function toggleTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("defgpa-theme", root.dataset.theme);
  } catch {
    /* private windows */
  }
  notifyListeners("theme");
}

function setTheme() {
  let theme = null;
  try {
    theme = localStorage.getItem("defgpa-theme");
  } catch {
    /* private windows */
  }
  document.documentElement.dataset.theme =
    theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function showKeys() {
  const keys = [
    ["Ctrl Z, Ctrl Shift Z", "undo, redo"],
    ["J, K", "next, previous specimen or finding"],
    ["[ , ]", "previous, next landmark"],
    ["arrows", "move the landmark (3-D: turn; with Alt: move)"],
    ["M", "mark the landmark as missing"],
    ["S", "swap two landmarks"],
    ["R", "reflect the specimen"],
    ["X", "exclude the specimen"],
    ["L", "exclude the landmark"],
    ["A", "accept the finding as it is"],
    ["+ , -", "zoom"],
    ["arrows, Enter", "in the morphospace: move the place; on a specimen: the next one, choose it"],
  ];
  const dialog = h(
    "dialog",
    { "aria-label": "Keys", onclose: () => dialog.remove() },
    h("h2", {}, "Keys"),
    h(
      "dl",
      { class: "facts" },
      keys.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]),
    ),
    h("p", {}),
    h("button", { class: "primary", onclick: () => dialog.close() }, "Close"),
  );
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (
    !(event.ctrlKey || event.metaKey) ||
    event.key.toLowerCase() !== "z" ||
    event.target.matches?.("input[type=text], textarea")
  )
    return;
  event.preventDefault();
  const log = store.project?.log;
  if (event.shiftKey ? log?.undone.length : log?.edits.length) (event.shiftKey ? redo : undo)();
});

listen((change) => {
  if (["edit", "queue", "project", "settings"].includes(change)) drawBar();
  if (change === "settings") revision = store.project.revision;
  // figures follow edits that are undone here or made in another tab
  const isShown = COMPUTED.includes(shown) && readAddress().id === store.project?.id;
  if (isShown && ["edit", "project"].includes(change) && store.project.revision !== revision)
    showStep();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names a project
  main.focus();
});
window.addEventListener("hashchange", showStep);
window.addEventListener("focus", async () => {
  // another tab may have changed the project
  if (!store.project) return;
  try {
    const { revision } = await get(`/api/projects/${encodeURIComponent(store.project.id)}`);
    if (revision !== store.project.revision) await openProject(store.project.id);
  } catch {
    /* told when something is asked for */
  }
});

setTheme();
(async () => {
  try {
    const start = await get("/api/start");
    let place = "";
    try {
      place = localStorage.getItem("defgpa-place") ?? "";
    } catch {
      /* private windows */
    }
    if (!location.hash && start.first) location.hash = `${encodeURIComponent(start.first)}/look`;
    else if (
      !location.hash &&
      place &&
      start.projects.some(({ id }) => place.startsWith(`#${encodeURIComponent(id)}/`))
    )
      location.hash = place;
    else await showStep();
  } catch (error) {
    fill(main, h("p", { class: "empty" }, error.message));
  }
})();
