"""Rows that name their user: `user,item` rows become sets; a second single answer is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from discreet.arrays.answers import distinct
from discreet.arrays.types import Ints
from discreet.errors import DataError
from discreet.policy.labels import quoted

if TYPE_CHECKING:
    import pyarrow as pa

Sets = tuple[Ints, Ints]  # items and offsets
User = str | int | None


def refuse_repeats(users: pa.Array, last: User) -> User:
    """Refuse a user who has several rows in succession; return the user of the last row."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(users):
        return last
    before = pa.concat_arrays([pa.array([last], users.type), users.slice(0, len(users) - 1)])
    again = users.filter(pc.equal(users, before))  # null equals nothing: no user, no repeat
    if len(again):
        raise DataError(
            f'the user {quoted(again[0].as_py())} has several rows, but kind = "single" takes one '
            'item per person; use kind = "set" for several'
        )
    return users[-1].as_py()


class SetsByUser:
    """Collects `user,item` rows into sets. The rows of a user must stand together."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._user: User = None
        self._items: list[Ints] = []
        self._others: pa.Table | None = None  # the current user's row of the other columns

    def add(
        self, users: pa.Array, items: Ints, others: pa.Table | None = None
    ) -> Iterator[tuple[Sets, pa.Table | None]]:
        """Take these rows, and give the sets that are now complete, with their other columns."""
        if users.null_count:
            raise DataError("a row has no user")
        names = users.to_numpy(zero_copy_only=False)
        if not len(names):
            return
        starts = np.flatnonzero(np.concatenate(([True], names[1:] != names[:-1])))
        continues = names[0] == self._user
        complete: list[Ints] = []
        for first, piece in zip(starts, np.split(items, starts[1:]), strict=True):
            if names[first] != self._user:
                if self._user is not None:
                    complete.append(np.concatenate(self._items))
                self._begin(names[first])
            self._items.append(piece)
        rows = None if others is None else self._join(others, starts, continues)
        if complete:
            offsets = np.cumsum([0] + [len(x) for x in complete])
            yield distinct(np.concatenate(complete), offsets), rows

    def _begin(self, user: User) -> None:
        if hash(user) in self._seen:
            raise DataError(f"the rows of user {user!r} are not together; sort the file by user")
        self._seen.add(hash(user))
        self._user, self._items = user, []

    def _join(self, others: pa.Table, starts: Ints, continues: bool) -> pa.Table:
        """One row of the other columns for each complete set; the rows of a user must agree."""
        import pyarrow as pa

        before = [] if self._others is None else [self._others]
        whole = pa.concat_tables([*(before if continues else []), others])
        first = starts + len(before) if continues else starts
        first = np.concatenate(([0], first[1:]))  # a user who continues began before this block
        inside = np.ones(len(whole), dtype=bool)
        inside[first] = False
        for name in whole.column_names:
            codes = whole[name].combine_chunks().dictionary_encode("encode").indices.to_numpy()
            if (inside[1:] & (codes[1:] != codes[:-1])).any():
                raise DataError(
                    f'the rows of a user differ in "{name}", so that column cannot be kept'
                )
        rows = pa.concat_tables([*([] if continues else before), whole.take(first)])
        self._others = rows.slice(len(rows) - 1)
        return rows.slice(0, len(rows) - 1)

    def finish(self) -> Iterator[tuple[Sets, pa.Table | None]]:
        """The last user's set."""
        if self._user is not None:
            last = np.concatenate(self._items)
            yield distinct(last, np.array([0, len(last)])), self._others
