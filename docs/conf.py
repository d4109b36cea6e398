"""The documentation site: Sphinx over the Markdown of this directory. `make docs` builds it into build/site."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # for tools.site, from whichever directory Sphinx is started

project = "kclient"
author = "the kclient authors"
copyright = "the kclient authors"  # noqa: A001 – Sphinx's name
html_title = "kclient"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "tools.site"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
# Lines that are indented by four are commands or output; ```python blocks run in tests/docs.
highlight_language = "text"

default_role = "literal"  # `poll()` in a docstring
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False  # search finds the words without the sources
pygments_style = "friendly"
pygments_dark_style = "github-dark"
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {
        "font-stack": "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'Liberation Sans', sans-serif",
        "font-stack--monospace": "ui-monospace, 'SF Mono', 'Cascadia Mono', 'DejaVu Sans Mono', monospace",
        "color-brand-primary": "#24507a",
        "color-brand-content": "#24507a",
        "color-api-name": "#24507a",
        "color-api-pre-name": "#5a6b7b",
    },
    "dark_css_variables": {
        "color-brand-primary": "#9ec3e6",
        "color-brand-content": "#9ec3e6",
        "color-api-name": "#9ec3e6",
        "color-api-pre-name": "#8a97a5",
    },
}
