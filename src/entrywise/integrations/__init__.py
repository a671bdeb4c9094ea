"""Beside the tools where entries are bought: evaluation harnesses, label tools, agents.

Each module imports its host where it is used, so that none of them is needed for the others:
``lm_eval`` and ``label_studio`` need nothing, ``inspect`` the extra ``inspect``, ``mcp`` the extra ``mcp``.
"""
