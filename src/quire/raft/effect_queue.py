"""Carries out the machine's effects in order, and waits with them while the disk is full.

A full disk breaks nothing: nothing was sent that rests on the failed write, because the effects that follow it wait
too. The write is retried until there is room.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable

from quire.raft.effects import AnswerFetch, Append, Effect, LeadershipChecked, PersistElection, Send
from quire.raft.errors import MetadataLogError
from quire.seams import Clock, Timer
from quire.storage.errors import is_full

log = logging.getLogger("quire.raft")

ROOM_CHECK_MS = 1_000.0


class EffectQueue:
    __slots__ = (
        "_carry_out",
        "_clock",
        "_directory",
        "_effects",
        "_failed",
        "_logged",
        "_room_timer",
        "_running",
        "_stopped",
        "_then",
    )

    def __init__(
        self,
        clock: Clock,
        directory: str,
        *,
        carry_out: Callable[[Effect], None],
        then: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """`carry_out` may raise OSError or MetadataLogError; `then` is called after a run of effects."""
        self._clock = clock
        self._directory = directory
        self._carry_out = carry_out
        self._then = then
        self._failed = failed
        self._effects: deque[Effect] = deque()
        self._running = False
        self._stopped = False
        self._room_timer: Timer | None = None
        self._logged = False

    @property
    def waits_for_room(self) -> bool:
        return self._room_timer is not None

    def add(self, effects: Iterable[Effect]) -> None:
        """Carries out effects, including those that result from carrying one out.

        While the disk is full, messages are dropped like messages that the network loses: they may not be sent before
        the write, and a long wait would pile them up. What rests on no write is not held up by one.
        """
        if self.waits_for_room:
            for effect in effects:
                if isinstance(effect, LeadershipChecked):
                    self._carry_out(effect)
                elif not isinstance(effect, Send | AnswerFetch):
                    self._effects.append(effect)
            self._then()
            return
        self._effects.extend(effects)
        if self._running:
            return
        self._running = True
        try:
            while self._effects and not self._stopped and not self.waits_for_room:
                self._carry_out_next()
        except (OSError, MetadataLogError) as error:
            self._failed(error)
        finally:
            self._running = False
        self._then()

    def repeat(self, effect: Effect, error: OSError) -> None:
        """An effect found no room on the disk: it is retried later, before all others."""
        self._effects.appendleft(effect)
        if not self._logged:
            log.error("the metadata cannot change until there is room on the disk of %s: %s", self._directory, error)
        self._logged = True
        if not self.waits_for_room:
            self._room_timer = self._clock.call_later(ROOM_CHECK_MS, self._try_again)

    def stop(self) -> None:
        self._stopped = True
        if self._room_timer is not None:
            self._room_timer.cancel()

    def _carry_out_next(self) -> None:
        effect = self._effects.popleft()
        try:
            self._carry_out(effect)
        except OSError as error:
            if not isinstance(effect, Append | PersistElection) or not is_full(error):
                raise
            self.repeat(effect, error)

    def _try_again(self) -> None:
        self._room_timer = None
        self.add([])
        if not self.waits_for_room and not self._stopped:
            self._logged = False
            log.info("there is room again on the disk of %s", self._directory)
