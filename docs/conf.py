"""How the site is built: Sphinx with the Furo theme, Markdown pages, nothing from the network."""

from __future__ import annotations

import sys
from pathlib import Path

import defgpa

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE / "_ext"))

project = "defgpa"
author = "The defgpa developers"
copyright = "the defgpa developers"
release = version = defgpa.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "executed",
    "mathml",
    "public_names",
    "sources",
]
exclude_patterns = ["_ext", "_static"]
suppress_warnings = ["ref.python"]  # an attribute of that name in two classes

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
smartquotes_action = "qe"  # two hyphens begin an option

autosummary_generate = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"defgpa {release}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # it would have to fetch the pages, which file:// does not allow
html_domain_indices = False
html_last_updated_fmt = None
html_show_sphinx = True
templates_path: list[str] = []
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0a5c8a",
        "color-brand-content": "#0a5c8a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7cc4ee",
        "color-brand-content": "#7cc4ee",
    },
    "navigation_with_keys": True,
}
pygments_style = "tango"
pygments_dark_style = "github-dark"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
