"""Every limit of the service, in one place. Times are in seconds, sizes in bytes."""

from __future__ import annotations

# ---- requests ------------------------------------------------------------------------------------
CONNECTIONS = 1000  # beyond, idle connections and unfinished bodies are closed for new ones
BACKLOG = 2048  # connections that the kernel queues until a worker accepts them
HEAD_SECONDS = 10.0  # until the headers of a request are complete
HEAD_SIZE = 32 << 10  # of the headers of a request
LINGER = 2.0  # for a client to read the refusal of its headers before we close
DROPPED = 1 << 20  # read and dropped from such a client meanwhile
UNREAD_SECONDS = 30.0  # for a client that reads nothing of its answer
BODY_SIZE = 8 << 20
FRAMES = 10_000  # reports in one body
BODY_PAUSE = 10.0  # without a byte of the body
BODY_SECONDS = 60.0  # for the whole body
WAITING = 256 << 20  # of all bodies that are not answered yet; beyond, uploads are refused as busy
DRAINED = 64 << 20  # read and dropped of a refused body

# ---- the store -----------------------------------------------------------------------------------
READERS = 2  # threads that read, each with its own connection, however many requests come
GROUP = 10_000  # reports in one transaction: a few tenths of a second of work
GATHERING = 0.005  # a transaction waits for more uploads
STORE_SECONDS = 10.0  # for a transaction; then the store counts as hanging
STORE_RATE = 5_000  # reports a second: a large transaction gets this much more time
LOCK_SECONDS = 10.0  # for a lock that another process or a frozen transaction holds
READ_LOCK_SECONDS = 5.0  # for a collection that is being closed; then the store counts as hanging
READ_SECONDS = 600.0  # for a reader to compute with what it has read; it blocks no upload
CONNECT_SECONDS = 5  # for a connection to a database server
ROOM = 256 << 10  # free on the disk, or the store is not ready
RESTART = 1  # between two tries to reach a store that is down at the start
BLOCK = 10_000  # stored reports exported at once
PAGE = 1 << 10  # of a SQLite file: one report writes whole pages
TALLY_SIZE = 2 << 30  # of the tallies of all questions and groups: they are read at once
PENDING_SIZE = 4 << 10  # of pending reports before they are counted into the tally, at least
PENDING_MOST = 16 << 20  # however large the tally
MARKS = 1 << 27  # items read when they are counted: some hundredths of a second
FRESH = 1.0  # until the state of a collection is read again
WATCH = 2.0  # between two looks for collections to close by their date
EXPIRE_AGAIN = 60.0  # until we try again to close a collection that could not be closed

# ---- names and secrets ---------------------------------------------------------------------------
NAME = 200  # characters of a collection's name
TOKEN = 16  # characters of the organiser's token, at least
TOKEN_KINDS = 6  # different characters in it, at least
TOKENS = 2  # that work at the same time, while one is being replaced

# ---- the desk ------------------------------------------------------------------------------------
SESSION_SECONDS = 12 * 3600.0  # until the organiser logs in again
WRONG_TOKENS = 10  # of one address in WRONG_SECONDS; then its further ones are refused unread
WRONG_SECONDS = 60.0
WRONG_ADDRESSES = 1_000  # that are remembered; the oldest gives way
DESIGN_SECONDS = 30.0  # of one draft at the desk
DRAFT_SIZE = 1 << 20  # of the body of a request to the desk
LOGIN_SIZE = 4 << 10
LISTED = 1_000  # surveys
REHEARSED = 100_000  # simulated people, at most
LOG_LINES = 200  # of this worker's log, kept in memory

# ---- answers -------------------------------------------------------------------------------------
CONFIDENCE = (0.5, 0.9999)  # of intervals
RETRY = 2  # until a refused client should try again
SILENCE = 10  # until the log repeats an event

# ---- the process ---------------------------------------------------------------------------------
LABELLED = 100  # collections with counters of their own; the others are counted together
COMPRESSED = 64 << 10  # a larger estimate is sent compressed
ESTIMATES = 8  # rendered estimates kept in memory
GRACE = 30  # for requests in flight when the service stops
LISTEN_SECONDS = 10.0  # to wait for a port that a killed collector still holds
IDLE = 20  # for a connection without a request
WORKER_SECONDS = 60  # until a worker that does not respond is replaced
SWITCH = 0.0005  # so that the committing thread does not wait long for the event loop
