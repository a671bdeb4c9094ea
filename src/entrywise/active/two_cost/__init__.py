"""Two instruments, one budget: cheap noisy columns, dear precise entries."""

from entrywise.active.two_cost.cur_plus import cur_plus
from entrywise.active.two_cost.literal import literal_noisy_cur
from entrywise.active.two_cost.noisy_cur import noisy_cur
from entrywise.active.two_cost.split_nuclear_norm import split_nuclear_norm
from entrywise.active.two_cost.two_phase import two_phase

__all__ = ["cur_plus", "literal_noisy_cur", "noisy_cur", "split_nuclear_norm", "two_phase"]
