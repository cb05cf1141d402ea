"""The page on writing a warp is code that runs."""

import re

import numpy as np

from support import ROOT

PAGE = ROOT / "docs" / "writing-a-warp.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_blocks_run_from_top_to_bottom(capsys):
    names = {"__name__": "writing_a_warp"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), names)
    printed = capsys.readouterr().out
    assert "free translations" in printed
    assert isinstance(names["again"].reference, np.ndarray)


def test_the_warp_is_as_short_as_promised():
    """Twenty lines that do something; blank lines, imports and the fields are not counted."""
    body = re.sub(
        r"^(\s*$|import.*|from.*|@.*|\s+\w+: [\w.]+( = .*|\s+#.*)?)\n", "", BLOCKS[0], flags=re.M
    )
    assert len(body.splitlines()) <= 20
