// Requests to the server, and the events of its long work.

export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new RequestError(
      0,
      "The server does not answer. Is 'defgpa app' still running? Nothing is lost: edits are saved as they are made.",
    );
  }
  // the work was interrupted by a change of the project, and nothing came of it
  if (response.status === 204)
    throw new RequestError(409, "The project was changed meanwhile; ask again.");
  if (!response.ok) {
    const text = await response.text();
    let message = text;
    try {
      message = JSON.parse(text).error ?? text;
    } catch {
      /* plain text */
    }
    throw new RequestError(
      response.status,
      message || `The server refused this (${response.status}).`,
    );
  }
  return response;
}

export async function get(path) {
  return (await request(path)).json();
}

export async function post(path, body = {}) {
  const options = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await request(path, options);
  return response.headers.get("Content-Type")?.startsWith("application/json")
    ? response.json()
    : response.arrayBuffer();
}

export async function getFloats(path) {
  return new Float32Array(await (await request(path)).arrayBuffer());
}

export async function getBuffer(path) {
  return (await request(path)).arrayBuffer();
}

export async function upload(project, name, file) {
  const path = `/api/projects/${encodeURIComponent(project)}/files?name=${encodeURIComponent(name)}`;
  return (await request(path, { method: "PUT", body: file })).json();
}

/** Start long work; handlers are called by the name of each event. Returns {promise, cancel}. */
export async function startJob(project, body, handlers = {}) {
  const { job } = await post(`/api/projects/${encodeURIComponent(project)}/jobs`, body);
  let source;
  const promise = new Promise((resolve, reject) => {
    source = new EventSource(`/api/jobs/${job}/events`);
    source.onmessage = (message) => {
      const event = JSON.parse(message.data);
      if (event.event === "done") {
        source.close();
        resolve(event.result);
      } else if (event.event === "failed") {
        source.close();
        reject(new RequestError(400, event.message));
      } else if (event.event === "cancelled") {
        source.close();
        resolve(null);
      } else handlers[event.event]?.(event);
    };
    source.onerror = () => {
      source.close();
      reject(new RequestError(0, "The connection to the server was lost."));
    };
  });
  return { promise, cancel: () => post(`/api/jobs/${job}/cancel`) };
}
