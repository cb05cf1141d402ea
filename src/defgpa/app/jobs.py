"""Long jobs, each in a thread, which report their progress and can be stopped."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from defgpa.app.responses import make_plain
from defgpa.app.wording import use_page_wording
from defgpa.errors import DefgpaError
from defgpa.threads import InterruptedWork, interruptible


@dataclass
class Job:
    """A job: its function, its progress, its events and its result.

    ``events`` grows; whoever listens has read some of them and waits for more.
    """

    kind: str
    id: str = field(default_factory=lambda: secrets.token_urlsafe(8))
    events: list[dict[str, object]] = field(default_factory=list)
    status: str = "running"
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def tell(self, event: str, **values: object) -> None:
        """Add an event, and stop here if the work was cancelled."""
        plain = {name: make_plain(value) for name, value in values.items()}
        self.events.append({"event": event, **plain})
        self.check()

    def report_progress(self, done: int, total: int) -> None:
        """Tell how far it is; the function that public functions take as ``progress``."""
        latest = self.events[-1] if self.events else {}
        if latest.get("event") == "progress":  # only the last one matters
            self.events[-1] = {"event": "progress", "done": done, "total": total}
            self.check()
        else:
            self.tell("progress", done=done, total=total)

    def check(self) -> None:
        """Raise where the work was cancelled."""
        if self._cancelled.is_set():
            raise InterruptedWork

    def cancel(self) -> None:
        """Ask the work to stop at its next step."""
        self._cancelled.set()

    def run(self, work: Callable[[Job], object]) -> None:
        """Run the work, and send its result or its error as the last event."""
        last: dict[str, object]
        try:
            with use_page_wording(), interruptible(self.check):
                last = {"event": "done", "result": make_plain(work(self))}
        except InterruptedWork:
            last = {"event": "cancelled"}
        except (DefgpaError, ValueError) as error:
            last = {"event": "failed", "message": str(error)}
        except MemoryError:
            last = {"event": "failed", "message": "There is not enough memory for that."}
        except Exception as error:  # shown by the page instead of lost in a thread
            last = {"event": "failed", "message": f"{type(error).__name__}: {error}"}
        self.events.append(last)
        self.status = str(last["event"])

    async def stream(self) -> AsyncIterator[str]:
        """Yield the events as server-sent events, until the last one."""
        n_sent, latest = 0, ""
        while True:
            finished = self.status != "running"
            events = list(self.events)
            for number in range(max(n_sent - 1, 0), len(events)):
                text = json.dumps(events[number], allow_nan=False)
                if number >= n_sent or text != latest:  # progress is replaced in its place
                    yield f"data: {text}\n\n"
                latest = text
            n_sent = len(events)
            if finished:
                return
            await asyncio.sleep(0.05)


class Jobs:
    """The jobs of a server, a few of them running."""

    MAX_KEPT = 50

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def start(self, kind: str, work: Callable[[Job], object]) -> Job:
        """Start work in a thread and return its job."""
        finished = [job.id for job in self._jobs.values() if job.status != "running"]
        for name in finished[: max(0, len(self._jobs) - self.MAX_KEPT)]:
            del self._jobs[name]
        job = Job(kind)
        self._jobs[job.id] = job
        threading.Thread(target=job.run, args=(work,), name=f"defgpa-{kind}", daemon=True).start()
        return job

    def get(self, name: str) -> Job | None:
        """Return a job by its id."""
        return self._jobs.get(name)

    def cancel_all(self) -> None:
        """Ask all running work to stop."""
        for job in self._jobs.values():
            job.cancel()
