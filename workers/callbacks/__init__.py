"""Callbacks: what becomes of a document is told to the address that its sender named."""
