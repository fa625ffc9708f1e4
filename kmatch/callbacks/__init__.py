"""Callbacks for `fit`."""

from kmatch.callbacks.checkpoint import Checkpoint as Checkpoint
from kmatch.callbacks.collapse import CollapseWatch as CollapseWatch
from kmatch.callbacks.recall import RecallAtK as RecallAtK
