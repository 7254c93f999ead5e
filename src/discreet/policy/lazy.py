"""Properties that are worked out once, when they are first asked for."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # as in Python 3.12
        """Without the lock of Python 3.11, which stays locked in a process that was forked while
        another thread held it.
        """

        def __get__(self, instance: object, owner: type | None = None) -> object:
            """The value, which then stands in the place of the property."""
            if instance is None:
                return self
            value = self.func(instance)
            instance.__dict__[self.attrname] = value
            return value
