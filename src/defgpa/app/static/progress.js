// Long work on the page: what it does, how far it is, a button that stops it.

import { startJob } from "./api.js";
import { h, showMessage } from "./dom.js";
import { changeSettings, store } from "./store.js";

/** Run work of the server, its progress shown in a container; the result, or null where it was cancelled or failed. */
export async function run(container, body, handlers = {}) {
  const bar = h("progress", { "aria-label": "Progress" }),
    text = h("span", { class: "text", role: "status" }, "Starting …");
  const stop = h("button", { "data-action": "cancel" }, "Cancel");
  const progress = h("div", { class: "progress" }, text, bar, stop);
  container.append(progress); // beside other work that is under way
  let stage = "",
    cancel = () => {}; // until the work has started
  stop.addEventListener("click", () => {
    stop.disabled = true;
    text.textContent = "Stopping …";
    cancel();
  });
  try {
    const job = await startJob(store.project.id, body, {
      ...handlers,
      stage: (event) => {
        stage = event.text;
        text.textContent = stage;
        bar.removeAttribute("value");
        handlers.stage?.(event);
      },
      progress: ({ done, total }) => {
        bar.max = total || 1;
        bar.value = done;
        text.textContent = `${stage || "Working"}: ${done} of ${total}`;
      },
      note: (event) => showMessage(event.text),
    });
    cancel = () => job.cancel();
    if (stop.disabled) cancel();
    const result = await job.promise;
    if (result === null) showMessage("Cancelled.");
    return result;
  } catch (error) {
    showMessage(error.message, "error");
    return null;
  } finally {
    progress.remove();
  }
}

/** Run a test by new settings. Scripts and tables repeat it; one that came to nothing leaves no trace. */
export async function runTest(container, kind, settings) {
  const names = Object.keys(settings);
  const before = Object.fromEntries(names.map((name) => [name, store.project.settings[name]]));
  const { id } = store.project;
  if (!(await changeSettings(settings))) return null;
  const result = await run(container, { kind });
  if (result === null && store.project?.id === id) await changeSettings(before);
  return result;
}
