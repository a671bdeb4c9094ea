"""Sphinx configuration; warnings are errors."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import api_page
import changelog_page
import cli_page
import drawn

import entrywise

project = "entrywise"
author = "the entrywise developers"
copyright = "2026, the entrywise developers"
release = version = entrywise.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["front.css"]
html_title = f"entrywise {entrywise.__version__}"
exclude_patterns = ["_build", "scale-runs.rst"]  # the second is a part of scale
napoleon_google_docstring = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
suppress_warnings = [
    "config.cache",
    "ref.python",
    "ref.citation",
]  # `shape` is an attribute of several classes
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",  # every example is run, and its pictures are shown
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
}

api_page.write(Path(__file__).parent / "api.rst")
cli_page.write(Path(__file__).parent / "cli.rst")
cli_page.write_methods(Path(__file__).parent / "methods.rst")
drawn.write(Path(__file__).parent)
changelog_page.write(
    Path(__file__).parent.parent / "CHANGELOG.md", Path(__file__).parent / "changelog.rst"
)


def _plain_references(app, what, name, obj, options, lines):
    """Several docstrings of a page cite the same paper: show references as a list, not as link targets."""
    lines[:] = [re.sub(r"^(\s*)\.\. \[(\w+)\] ", r"\1*  [\2] ", line) for line in lines]


def _skip_requests(app, what, name, obj, skip, options):
    """scikit-learn's set_fit_request and the like are its own: its manual tells of them."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app):
    app.connect("autodoc-process-docstring", _plain_references, priority=900)
    app.connect("autodoc-skip-member", _skip_requests)
