"""Signals: pure functions of one page's pixels and words, each a number with a name."""
