"""Write the reference page from what the packages list as public, so that nothing public is missing."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Each room with its packages and modules; a package speaks through its __all__, a module through what it defines.
ROOMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Values", ("", "queries", "observations", "results", "exceptions")),
    ("Files", ("tables",)),
    ("Completion", ("complete", "held_out", "passive", "intervals", "metrics", "datasets")),
    ("Active", ("active",)),
    ("Online", ("online",)),
    ("Running", ("play", "run", "oracles", "budget")),
    ("Studies", ("study",)),
    ("Applications", ("apply",)),
    ("Estimators", ("estimators",)),
    ("Bounds", ("bounds",)),
    ("Checks", ("checks",)),
)
HIDDEN = frozenset({"checks.postgres"})  # for our own tests


def public(name: str) -> Iterator[tuple[str, Any]]:
    """Yield (where, object) of everything public in ``entrywise.<name>``: its ``__all__``, else what it defines."""
    module = importlib.import_module(f"entrywise.{name}" if name else "entrywise")
    listed = getattr(module, "__all__", None)
    if listed is not None:
        for word in listed:
            if not word.startswith("__"):
                yield f"{module.__name__}.{word}", getattr(module, word)
        return
    for word, value in vars(module).items():
        own = getattr(value, "__module__", None) == module.__name__
        if (
            own
            and not word.startswith("_")
            and (inspect.isfunction(value) or inspect.isclass(value))
        ):
            yield f"{module.__name__}.{word}", value
    for child in pkgutil.iter_modules(getattr(module, "__path__", ())):
        path = f"{name}.{child.name}"
        if not child.name.startswith("_") and path not in HIDDEN:
            yield from public(path)


def methods() -> Iterator[tuple[str, Any]]:
    """Yield (where, object) of every method that users can name."""
    from entrywise.methods import METHODS

    for method in METHODS:
        module, word = method.home.split(":")
        yield f"entrywise.{module}.{word}", method.load()


def entries() -> dict[str, list[tuple[str, Any]]]:
    """Return what stands in each room; every object stands once, in the first room that lists it."""
    seen: set[int] = set()
    found: dict[str, list[tuple[str, Any]]] = {}
    named = list(methods())
    for title, packages in ROOMS:
        found[title] = []
        rest = [pair for pair in named if pair[0].split(".")[1] in packages]
        for where, value in [*(pair for name in packages for pair in public(name)), *rest]:
            is_object = inspect.isfunction(value) or inspect.isclass(value)
            if is_object and id(value) not in seen and not _elsewhere(title, value):
                seen.add(id(value))
                found[title].append((where, value))
    return found


def _elsewhere(title: str, value: Any) -> bool:
    """Return whether an object that the front door lists lives in a room of its own."""
    home = value.__module__.split(".")[1] if "." in value.__module__ else ""
    rooms = {room for room, packages in ROOMS if home in packages}
    return bool(rooms) and title not in rooms


def elsewhere_shown() -> set[str]:
    """Return the objects and modules that other pages show: here they are not indexed a second time."""
    made = ("api.rst", "cli.rst", "methods.rst", "changelog.rst")
    pages = [page for page in Path(__file__).parent.glob("*.rst") if page.name not in made]
    shown = (re.findall(r"^\.\. auto\w+:: (\S+)", page.read_text(), re.M) for page in pages)
    return {name for names in shown for name in names}


def directive(where: str, value: Any, shown: set[str]) -> list[str]:
    """Return the lines that show one object."""
    if not inspect.isclass(value):
        lines = [f".. autofunction:: {where}"]
    else:
        lines = [f".. autoclass:: {where}", _members(where, value)]
    if where in shown or where.rpartition(".")[0] in shown:
        lines.append("   :no-index:")
    return [*lines, ""]


def _members(where: str, value: type) -> str:
    """Return which members of a class are shown: all, or the methods of an estimator that are its own."""
    if ".estimators." not in where:
        return "   :members:"
    own = [
        name
        for name, member in vars(value).items()
        if inspect.isfunction(member) and not name.startswith("_") and not name.endswith("_request")
    ]
    return f"   :members: {', '.join(own)}"


def write(path: Path) -> None:
    """Write the reference page."""
    shown = elsewhere_shown()
    words = "This page is made from what each package lists as public."
    parts = ["Reference", "=========", "", words, ""]
    for title, pairs in entries().items():
        parts += [title, "-" * len(title), ""]
        for where, value in pairs:
            parts += directive(where, value, shown)
    text = "\n".join(parts)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
