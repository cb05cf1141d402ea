"""One self-contained HTML page about an alignment: text, figures and pictures one can turn."""

from defgpa.report._page import write_report, write_statistics

__all__ = ["write_report", "write_statistics"]
