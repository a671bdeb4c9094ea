"""Write the reference page from what the packages list as public, so that nothing public is missing."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Each room with its packages and modules; a package speaks through its __all__, a module through what it defines.
ROOMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Values", ("", "queries", "observations", "results", "exceptions")),
    ("Files", ("tables",)),
    ("Completion", ("complete", "passive", "intervals", "metrics", "datasets")),
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


def write(path: Path) -> None:
    """Write the reference page."""
    parts = [
        "Reference",
        "=========",
        "",
        "This page is made from what each package lists as public.",
        "",
    ]
    for title, pairs in entries().items():
        parts += [title, "-" * len(title), ""]
        for where, value in pairs:
            kind = "autoclass" if inspect.isclass(value) else "autofunction"
            parts.append(f".. {kind}:: {where}")
            if kind == "autoclass":
                parts.append("   :members:")
            parts.append("")
    text = "\n".join(parts)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
