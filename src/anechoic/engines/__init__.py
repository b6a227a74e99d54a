"""Engines: they carry messages between an algorithm's two rules, and add nothing."""

from anechoic.engines.run import Run, train

__all__ = ["Run", "train"]
