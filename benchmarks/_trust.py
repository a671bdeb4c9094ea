"""One table of what is promised against what was counted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from _shared import show

SEED = 22_11_17  # of problems on which nothing was tuned
COLUMNS = ("section", "case", "promised", "measured", "s.e.", "n", "")


@dataclass
class Claims:
    """Figures with their bars; a figure fails when it is more than two standard errors outside."""

    quick: bool = False
    seed: int = SEED
    rows: list[tuple[object, ...]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def problems(self, many: int, few: int) -> int:
        """How many problems a case has, in the long form and in the quick one."""
        return few if self.quick else many

    def share(self, section, case, each, low=None, high=None):
        """Note a mean over problems, whose standard error the problems themselves give."""
        each = np.asarray(each, dtype=float)
        n = len(each)
        error = float(each.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
        self.figure(section, case, float(each.mean()), n, low, high, error)

    def figure(self, section, case, value, n, low=None, high=None, error=0.0):
        """Note a figure with its own standard error."""
        room = 2 * np.nan_to_num(error)
        missed = (low is not None and value + room < low) or (
            high is not None and value - room > high
        )
        bars = {(True, True): "", (False, True): f">= {low}", (True, False): f"<= {high}"}
        promised = bars.get((low is None, high is None), f"{low}-{high}")
        verdict = "MISSED" if missed else "met" if promised else "told"
        said = "-" if not error or np.isnan(error) else f"{error:.2g}"
        self.rows.append((section, case, promised, f"{value:.4g}", said, n, verdict))
        if missed:
            self.failed.append(f"{section}, {case}: {value:.4g} against {promised}")

    def end(self) -> None:
        """Print the table; exit code 1 when a bar is missed."""
        show("promised against measured", COLUMNS, self.rows)
        raise SystemExit(1 if self.failed else 0)
