"""Properties that are worked out once, and that a fork cannot lock."""

import os
import threading

from discreet.policy.lazy import cached_property


class Slow:
    def __init__(self):
        self.begun, self.go, self.count = threading.Event(), threading.Event(), 0

    @cached_property
    def value(self):
        """What takes long."""
        self.count += 1
        self.begun.set()
        self.go.wait(30)
        return 7


def test_it_is_worked_out_once_and_documented():
    one = Slow()
    one.go.set()
    assert one.value == one.value == 7 and one.count == 1
    assert Slow.value.__doc__ == "What takes long."


def test_a_child_is_not_locked_by_a_thread_that_stayed_behind():
    """Python 3.11's own would wait for ever: its lock is held in the moment of the fork."""
    one, other = Slow(), Slow()
    other.go.set()
    thread = threading.Thread(target=lambda: one.value)
    thread.start()
    one.begun.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(0 if other.value == 7 else 1)
    one.go.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
