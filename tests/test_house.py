"""The house: files named as what they hold, nothing shadowed, nothing private borrowed, no cycles."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import grimp
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import entrywise
from entrywise.methods import METHODS

SOURCE = Path(entrywise.__file__).parent
OTHERWISE = {  # methods whose file does not bear the whole name of the function, and why
    "literal-noisy-cur": "two_cost/ has one paper with a literal form, so the form alone names it",
    "sequential-halving": "the only halving of pairs/",
    "successive-elimination": "elimination.py holds both eliminations: they share their rounds",
    "median-elimination": "elimination.py holds both eliminations: they share their rounds",
    "best-pair": "apply/ names its files after what is wanted; best_pair calls plans of active/pairs",
    "auto": "the majority over learners, with the experts that it takes when nothing is known",
    "matrix-winnow": "Winnow is the algorithm; every learner here is one of a matrix",
    "symmetric-winnow": "beside winnow.py, what differs is the symmetry",
    "hazan": "four authors are cited by the first",
    "row-column-majority": "majority.py is the majority over learners",
}


def words(name):
    """Return the words of a name in snake or camel case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


def modules():
    """Return (dotted name, path, whether it is a package) of every module of the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        package = parts[-1] == "__init__"
        yield ".".join(parts[:-1] if package else parts), path, package


def test_a_method_lives_in_the_file_of_its_name():
    wrong = {}
    for method in METHODS:
        module, function = method.home.split(":")
        *folders, file = module.split(".")
        family = {w for folder in folders for w in words(folder)}
        family |= {w.removesuffix("s") for w in family}
        said = words(file)
        left = [w for w in words(function) if w not in said and w not in family]
        if left or not set(said) <= set(words(function)):
            wrong[method.name] = method.home
    assert wrong.keys() == OTHERWISE.keys(), wrong


# To import a module is to import the packages above it, and then itself where they have not. So "this one first" is
# its package first, and a copy of that process goes on with the module: what other projects hold is loaded once.
FIRST = """
import importlib, os, sys
import numpy, scipy.linalg, scipy.optimize, scipy.sparse.linalg, scipy.special, scipy.stats
for other in ("numba", "sklearn.base", "sqlalchemy", "alembic", "typer", "rich.console", "fastapi", "matplotlib"):
    try:
        importlib.import_module(other)
    except ImportError:
        pass

def look(name):
    importlib.import_module(name)
    for package in ("active", "passive", "online", "apply.crowd", "apply.ranking"):
        home = sys.modules.get("entrywise." + package)
        for public in [] if home is None else home.__all__:
            if isinstance(getattr(home, public), type(sys)):
                print(name, "first:", package, "shows a module as", public, flush=True)

def copied(name, inside):
    child = os.fork()
    if child == 0:
        try:
            look(name)
            for each in inside.get(name, ()):
                if each in inside or each not in sys.modules:
                    copied(each, inside)
            code = 0
        except BaseException as error:
            print(name, "first:", repr(error), flush=True)
            code = 1
        os._exit(code)
    os.waitpid(child, 0)

inside = {}
for name in sys.argv[1:]:
    inside.setdefault(name.rpartition(".")[0], []).append(name)
copied("entrywise", inside)
"""


@pytest.mark.slow
def test_no_module_stands_before_the_function_of_its_name():
    """Whichever module is imported first, the public names of the rooms are functions and classes."""
    names = [name for name, _, _ in modules() if name != "entrywise"]
    names = [name for name in names if not name.endswith("__main__") and "_jit_" not in name]
    command = [sys.executable, "-c", FIRST, *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def imports(tree, module, package):
    """Yield (line, module imported, name imported) of every import of the source, function-level ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, ""
        elif isinstance(node, ast.ImportFrom):
            home = node.module or ""
            if node.level:
                parts = module.split(".")
                home = ".".join([*parts[: len(parts) - node.level + package], home]).strip(".")
            for alias in node.names:
                yield node.lineno, home, alias.name


def test_nothing_private_is_borrowed():
    """A name with an underscore stays in its package; kernels of linalg are imported where they are called."""
    wrong = []
    for name, path, package in modules():
        own = name if package else name.rpartition(".")[0]
        for line, home, what in imports(parsed(path), name, package):
            if home.split(".")[0] != "entrywise":
                continue
            whole = [*home.split("."), *([what] if what else [])]
            private = [k for k, part in enumerate(whole) if re.match("_(?!_)", part)]
            if not private or whole[private[0]].startswith("_jit_"):
                continue
            home = ".".join(whole[: private[0]])
            if own not in (home, home.rpartition(".")[0]):
                wrong.append(f"{name}:{line} imports {'.'.join(whole)}")
    assert not wrong, "\n".join(wrong)


def test_no_two_modules_import_each_other():
    """Not even inside functions, nor through others."""
    graph = grimp.build_graph("entrywise", exclude_type_checking_imports=True, cache_dir=None)
    names = sorted(graph.modules)
    at = {name: k for k, name in enumerate(names)}
    pairs = [(at[a], at[b]) for a in names for b in graph.find_modules_directly_imported_by(a)]
    i, j = np.array(pairs).T
    size = len(names)
    links = coo_array((np.ones(len(i)), (i, j)), shape=(size, size))
    _, part = connected_components(links, connection="strong")
    rings = [np.flatnonzero(part == c) for c in np.flatnonzero(np.bincount(part) > 1)]
    assert not rings, [[names[k] for k in ring] for ring in rings]


def test_no_two_classes_share_a_name():
    """One word for one thing: a public class of one package is not another thing in the next."""
    homes: dict[str, list[str]] = {}
    for name, path, _ in modules():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    assert {k: v for k, v in homes.items() if len(v) > 1} == {}
