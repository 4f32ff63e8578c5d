# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""How Sphinx builds the pages; CONTRIBUTING.md has the command, whose source is the repository."""

from physicsnemo_cano import __version__

project = "physicsnemo-cano"
copyright = "2026, The physicsnemo-cano authors"
release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/*.rst",
    "benchmarks/README.md",
    "examples/*/README.md",
]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
# The sections in which PhysicsNeMo's modules describe their forward pass.
napoleon_custom_sections = [("Forward", "params_style"), ("Outputs", "returns_style")]

html_theme = "furo"
