# How Sphinx makes the site: the pages of docs/ as they are, and the headers by Doxygen and Breathe. CMake copies the pages
# beside this file and sets ZC_DOXYGEN_XML; see CMakeLists.txt.
import os

project = "ZeroComm"
extensions = ["breathe", "myst_parser"]
breathe_projects = {"zerocomm": os.environ["ZC_DOXYGEN_XML"]}
breathe_default_project = "zerocomm"
breathe_domain_by_extension = {"h": "c"}
myst_heading_anchors = 2
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
exclude_patterns = ["*.in.md"]
# Links to files of the repository that are no pages; a struct and its typedef, which have one name in C.
suppress_warnings = ["myst", "myst.ref", "ref.myst", "duplicate_declaration.c"]
