# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""What holds for every source file."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("physicsnemo_cano", "examples", "benchmarks", "tests")
HEADER = (
    "# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.\n"
    "# SPDX-License-Identifier: Apache-2.0\n"
)


def test_source_files_name_their_licence():
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    missing = [
        str(file.relative_to(ROOT)) for file in files if HEADER not in file.read_text()[:300]
    ]
    assert not missing, f"these files do not start with the lines\n{HEADER}: {missing}"


def test_public_functions_say_what_they_take_return_and_raise():
    """Numpydoc's sections Parameters, Returns (or Yields) and Raises, where there is such a thing.

    Excused are ``forward``, which its class documents, and properties; methods that a base class
    in the package has, which documents them, and those of PhysicsNeMo's ``FunctionSpec``; Triton
    kernels, which the functions that launch them document.
    """
    trees = {f: ast.parse(f.read_text()) for f in (ROOT / "physicsnemo_cano").rglob("*.py")}
    classes = {n.name: n for tree in trees.values() for n in tree.body if hasattr(n, "bases")}

    def inherits(owner, method):
        bases = [ast.unparse(base) for base in owner.bases]
        own = [classes[base] for base in bases if base in classes]
        return "FunctionSpec" in bases or any(
            method in [getattr(n, "name", "") for n in base.body] or inherits(base, method)
            for base in own
        )

    def lacking(function):
        raised = [ast.unparse(n) for n in ast.walk(function) if isinstance(n, ast.Raise) and n.exc]
        needs = {
            "Parameters": ast.unparse(function.args) not in ("", "self", "cls"),
            "Returns": function.returns and ast.unparse(function.returns) != "None",
            "Raises": any("NotImplementedError" not in error for error in raised),
        }
        text = (ast.get_docstring(function) or "").replace("Yields\n------", "Returns\n-------")
        return [key for key in needs if needs[key] and f"{key}\n{'-' * len(key)}\n" not in text]

    missing = []
    for file, tree in trees.items():
        public = [c for c in tree.body if hasattr(c, "bases") and c.name[0] != "_"]
        for f, owner in [(n, None) for n in tree.body] + [(n, c) for c in public for n in c.body]:
            if not isinstance(f, ast.FunctionDef) or f.name[0] == "_" or f.name == "forward":
                continue
            marks = {ast.unparse(mark) for mark in f.decorator_list}
            if not (
                marks & {"property", "cached_property", "triton.jit"}
                or (owner and inherits(owner, f.name))
            ):
                missing += [f"{file}:{f.lineno} {f.name}: {key}" for key in lacking(f)]
    assert not missing, "\n".join(missing)
