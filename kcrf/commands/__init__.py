"""The command line."""

from kcrf.commands.main import main

__all__ = []
