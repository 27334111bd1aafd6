"""The states of a move, in order. A crash in any of them, or in the next step, loses nothing:

    state       on disk                             what a start does
    ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
    WAITING     an empty future log                 goes on copying
    COPYING     a future log, a prefix of the       truncates the future log to what the original has too (it may have
                original or with an end that was    been truncated, and a power loss may restore what was cut from
                truncated in the original           either), and goes on copying
    ANNOUNCED   the same. The controller has or     the same; reports the directory of the original, and later that of
                will have the new directory         the copy again
    READYING    the same, with everything synced    the same
    PLACING     both folders may have their marks,  one log: goes on copying, or serves it if the move was over.
                the copy may have its final name    two logs: the longer one has everything; if the original is
                                                    longer, the copy begins again
    FOLLOWING   two logs with marks; the original   the same: the original is at least as long
                takes the writes
    DECIDING    two logs with marks; the copy       the longer one has everything: the copy, or the original if a power
                takes the writes                    loss took more from the copy, which the flush makes impossible for
                                                    what was on disk before
    LEAVING     the copy decides; the original may  uses the copy, and removes the original
                have the name of a deleted log

Of two logs, that with the later leader epoch at its end is the longer one, otherwise that with the higher end: batches
of one epoch and offset are the same in both, and only a truncation makes a log shorter, after which the next batch has
a later epoch. If the directory of one of two logs has failed, the other one may be outdated: it stays offline, unless
it decides. From PLACING on until the last mark is gone, that is known from the marks, which are synced before the copy
gets its name.
"""

from enum import IntEnum, auto


class MoveState(IntEnum):
    WAITING = auto()
    """Too many others are being copied, or the cleaner works on the log."""
    COPYING = auto()
    ANNOUNCED = auto()
    """The copy has had everything once; the controller is told the new directory."""
    READYING = auto()
    """Everything copied so far is synced, with the checkpoints of the target directory."""
    PLACING = auto()
    """A job gives the copy its final name, and opens it there."""
    FOLLOWING = auto()
    """What was written meanwhile is copied."""
    DECIDING = auto()
    """The copy is the partition's log. It is flushed, and then says so on disk."""
    LEAVING = auto()
    """The original is removed."""
    ENDED = auto()
