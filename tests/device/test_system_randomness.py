"""Numbers from the system's bytes: uniform by enumeration, and every byte is used at most once."""

import random
from collections import Counter
from itertools import product

import pytest

from discreet.device.randomness import SystemRandomness


class System:
    """Stands for the operating system: gives the bytes of a script, then others, and keeps them."""

    def __init__(self, script=b""):
        self.script, self.given, self.rest = script, [], random.Random(5)

    def __call__(self, size):
        chunk = (self.script + self.rest.randbytes(size))[:size]
        self.script = self.script[size:]
        self.given.append(chunk)
        return chunk


@pytest.fixture
def system(monkeypatch):
    def install(script=b""):
        made = System(script)
        monkeypatch.setattr("os.urandom", made)
        return made

    return install


@pytest.mark.parametrize("count", [1, 2, 5, 7, 8, 9, 13, 16])
def test_every_number_of_bits_comes_from_as_many_bytes(system, count):
    size = 1 if count <= 8 else 2
    seen = Counter()
    for script in product(range(256), repeat=size):
        system(bytes(script))
        seen[SystemRandomness().bits(count)] += 1
    assert seen == dict.fromkeys(range(2**count), 256**size // 2**count)


@pytest.mark.parametrize("bound", [*range(1, 18), 100, 127, 128, 129, 255, 256])
def test_every_number_below_a_bound_comes_from_as_many_bytes(system, bound):
    """A byte that is beyond the bound is left out, and the next one is taken."""
    seen, refused = Counter(), 0
    for first in range(256):
        source, given = SystemRandomness(), system(bytes([first, 0, 255]))
        number = source.below(bound)
        after = source.bits(8)
        again = after == 255 and bound > 1
        refused += again
        if not again:
            assert after == (0 if bound > 1 else first) and len(given.given) == 1
            seen[number] += 1
        else:
            assert number == 0
    assert set(seen) == set(range(bound)) and len(set(seen.values())) == 1
    assert refused == 256 - sum(seen.values()) and refused < 128


@pytest.mark.parametrize("bound", [257, 40_000, 2**16, 2**32, 2**32 + 1])
def test_large_bounds_are_reached_and_not_passed(system, bound):
    size = -(-(bound - 1).bit_length() // 8)
    spare = 8 * size - (bound - 1).bit_length()
    for number in (0, 1, bound - 1):
        system((number << spare).to_bytes(size, "little"))
        assert SystemRandomness().below(bound) == number
    if bound.bit_count() > 1:
        system((bound << spare).to_bytes(size, "little") + bytes(size))
        assert SystemRandomness().below(bound) == 0


def test_every_byte_is_used_at_most_once_and_in_order(system):
    """Numbers of many lengths: each is the next bytes that were given, or the first of new ones."""
    given, source = system(), SystemRandomness()
    place, chunk, lengths = 0, 0, random.Random(3)
    for _ in range(3_000):
        count = lengths.choice([1, 8, 12, 32, 64, 800, 4_096, 9_000])
        before, size = len(given.given), -(-count // 8)
        number = source.bits(count)
        if len(given.given) > before:
            assert len(given.given) == before + 1
            assert before == 0 or place + size > len(given.given[chunk]), "what is left is used"
            place, chunk = 0, before
        taken = given.given[chunk][place : place + size]
        assert len(taken) == size
        assert number == int.from_bytes(taken, "little") >> (8 * size - count)
        place += size
    assert len(given.given) > 500


def test_nothing_is_kept_for_another_report(system):
    """Every source asks the system itself, once for what a short report needs."""
    given = system()
    for k in range(5):
        source = SystemRandomness()
        assert len(given.given) == k
        for _ in range(60):
            source.bits(64)
        assert len(given.given) == k + 1


def test_no_bits_need_no_byte(system):
    given, source = system(), SystemRandomness()
    assert source.bits(0) == 0 and source.below(1) == 0
    assert b"".join(given.given) == b""
