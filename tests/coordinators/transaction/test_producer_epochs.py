"""No producer gets the highest epoch, and an operation without a producer id says that it needs one."""

import pytest

from quire.coordinators.transaction.producer_epochs import (
    HIGHEST_EPOCH,
    NO_PRODUCER_ID,
    NeedsProducerId,
    fenced,
    is_exhausted,
    require_producer_id,
)
from quire.protocol.errors import ErrorCode


def test_the_last_epoch_of_a_producer_is_the_one_before_the_highest() -> None:
    assert not is_exhausted(HIGHEST_EPOCH - 2)
    assert is_exhausted(HIGHEST_EPOCH - 1)
    assert is_exhausted(HIGHEST_EPOCH)


def test_a_missing_producer_id_is_an_error_that_clients_retry() -> None:
    assert require_producer_id(7) == 7
    with pytest.raises(NeedsProducerId) as raised:
        require_producer_id(NO_PRODUCER_ID)
    assert raised.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_a_fenced_producer_gets_an_error_that_its_version_knows() -> None:
    assert fenced("close it", is_old_version=False).code is ErrorCode.PRODUCER_FENCED
    assert fenced("close it", is_old_version=True).code is ErrorCode.INVALID_PRODUCER_EPOCH
