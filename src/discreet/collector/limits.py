"""Every limit of the service, in one place. Times are in seconds, sizes in bytes."""

from __future__ import annotations

# ---- requests ------------------------------------------------------------------------------------
CONNECTIONS = 1000  # beyond, idle connections and unfinished bodies give way to new ones
BACKLOG = 2048  # connections that the kernel keeps until a worker takes them
HEAD_SECONDS = 10.0  # for the head of a request
HEAD_SIZE = 32 << 10
LINGER = 2.0  # for a client whose head was refused to read the answer
DROPPED = 1 << 20  # that it may still send meanwhile
UNREAD_SECONDS = 30.0  # in which a client reads nothing of its answer
BODY_SIZE = 8 << 20
FRAMES = 10_000  # reports in one body
BODY_PAUSE = 10.0  # without a byte of the body
BODY_SECONDS = 60.0  # for the whole body
WAITING = (
    256 << 20
)  # of all bodies that are not answered yet; beyond, people are asked to come back
DRAINED = 64 << 20  # of a refused body that are still read, and dropped

# ---- the store -----------------------------------------------------------------------------------
READERS = 2  # threads that read, each with a connection, whatever is asked of us
GROUP = 10_000  # reports in one transaction: some tenths of a second of work, not more
GATHERING = 0.005  # that a transaction waits for company
STORE_SECONDS = 10.0  # for a transaction; then the store hangs
STORE_RATE = 5_000  # reports a second for which a large transaction gets more time
LOCK_SECONDS = 10.0  # for a lock that another process holds, or a transaction that froze
READ_LOCK_SECONDS = 5.0  # for a collection that is being closed, before the store seems to hang
READ_SECONDS = 600.0  # that a reader computes with what it has read; it keeps no report waiting
CONNECT_SECONDS = 5  # for a connection to a database server
ROOM = 256 << 10  # that must fit on the disk for the store to be ready
RESTART = 1  # between two tries to reach a store that is down when we start
BLOCK = 10_000  # stored reports that are exported at once
PAGE = 1 << 10  # of a SQLite file: one report writes whole pages
FOLD_SIZE = 4 << 10  # of reports that wait to be counted into the tally, at least
FOLD_MARKS = 1 << 27  # items looked at when they are: some hundredths of a second
FRESH = 1.0  # for which the state of a collection is believed
WATCH = 2.0  # between two looks for collections whose time is over
EXPIRE_AGAIN = 60.0  # until one that could not be closed is tried again

# ---- names and secrets ---------------------------------------------------------------------------
NAME = 200  # characters of a collection's name
TOKEN = 16  # characters of the organiser's token, at least
TOKEN_KINDS = 6  # different ones among them, at least

# ---- answers -------------------------------------------------------------------------------------
STEP = 50  # more reports before anyone without the token sees another one
CONFIDENCE = (0.5, 0.9999)  # of intervals
RETRY = 2  # after which people are asked to come back
SILENCE = 10  # in which the log does not say again that the store is down

# ---- the process ---------------------------------------------------------------------------------
LABELLED = 100  # collections that have counters of their own; others are counted together
ESTIMATES = 8  # rendered estimates that are remembered
GRACE = 30  # for requests in flight when we are asked to stop
LISTEN_SECONDS = 10.0  # to wait for an address that a killed collector still holds
IDLE = 20  # for a connection without a request
WORKER_SECONDS = 60  # until a worker that says nothing is replaced
SWITCH = 0.0005  # the committing thread must not wait long for the event loop, eight times each
