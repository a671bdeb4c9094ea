"""Pure array steps: no oracle, no study, no file. Compiled kernels live in ``_jit_*.py``."""
