import pytest

import kmatch


@pytest.fixture
def checkpoint(build, losses, tmp_path):
    model = build()
    model.compile(loss=losses())
    checkpoint = kmatch.callbacks.Checkpoint(tmp_path)
    checkpoint.set_model(model)
    return checkpoint


def finish_epoch(checkpoint, rsum):
    checkpoint.model.epochs_trained += 1
    checkpoint.on_epoch_end(0, {"val_rsum": rsum})


def test_last_and_best(checkpoint):
    assert checkpoint.last() is checkpoint.best() is None
    for rsum in (10.0, 30.0, 20.0):
        finish_epoch(checkpoint, rsum)
    assert checkpoint.last().epochs_trained == 3
    assert checkpoint.best().epochs_trained == 2
    assert [logs["val_rsum"] for logs in checkpoint.history()] == [10, 30, 20]


def test_the_best_is_known_after_a_restart(checkpoint):
    for rsum in (30.0, 20.0):
        finish_epoch(checkpoint, rsum)
    again = kmatch.callbacks.Checkpoint(checkpoint.directory)
    again.set_model(again.last())
    finish_epoch(again, 25.0)
    assert again.best().epochs_trained == 1
    finish_epoch(again, 35.0)
    assert again.best().epochs_trained == 4
    assert len(again.history()) == 4


def test_a_kill_while_saving_leaves_the_last_whole_epoch(
    checkpoint, monkeypatch
):
    finish_epoch(checkpoint, 10.0)

    def killed(path):
        path.write_bytes(b"half a file")
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.model, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        finish_epoch(checkpoint, 20.0)
    again = kmatch.callbacks.Checkpoint(checkpoint.directory)
    assert again.last().epochs_trained == 1
    assert again.best().epochs_trained == 1


def test_what_was_lost_is_not_in_the_history(checkpoint):
    for rsum in (10.0, 40.0):
        finish_epoch(checkpoint, rsum)
    checkpoint.model.epochs_trained = 1  # as if last.keras were older
    finish_epoch(checkpoint, 20.0)
    assert [logs["val_rsum"] for logs in checkpoint.history()] == [10, 20]


def test_clear_forgets_an_earlier_training(checkpoint):
    finish_epoch(checkpoint, 10.0)
    checkpoint.clear()
    assert checkpoint.last() is checkpoint.best() is None
    assert checkpoint.history() == []


def test_a_missing_monitor_is_named(checkpoint):
    with pytest.raises(ValueError, match="'val_rsum'.*RecallAtK before it"):
        checkpoint.on_epoch_end(0, {"loss": 1.0})
