"""One self-contained HTML page about an alignment: text, numbers and figures one can turn."""

from defgpa.report._methods import write_methods
from defgpa.report._page import write_report, write_statistics
from defgpa.report._statistics import Statistic as Statistic
from defgpa.report._statistics import TabularStatistic as TabularStatistic

__all__ = ["write_methods", "write_report", "write_statistics"]
