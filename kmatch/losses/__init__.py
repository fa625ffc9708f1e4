"""Losses: each a pure function and a layer around it."""

from kmatch.losses.base import MatchingLoss as MatchingLoss
from kmatch.losses.projection import CMPC as CMPC
from kmatch.losses.projection import CMPM as CMPM
from kmatch.losses.projection import cmpc as cmpc
from kmatch.losses.projection import cmpm as cmpm
