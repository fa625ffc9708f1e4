"""Losses: each a pure function and a layer around it."""

from kmatch.losses.adversarial import GradientReversal as GradientReversal
from kmatch.losses.adversarial import (
    ModalityClassification as ModalityClassification,
)
from kmatch.losses.adversarial import NegativeEntropy as NegativeEntropy
from kmatch.losses.adversarial import (
    modality_classification as modality_classification,
)
from kmatch.losses.adversarial import negative_entropy as negative_entropy
from kmatch.losses.balance import LabelBalance as LabelBalance
from kmatch.losses.balance import label_balance as label_balance
from kmatch.losses.base import MatchingLoss as MatchingLoss
from kmatch.losses.projection import CMPC as CMPC
from kmatch.losses.projection import CMPM as CMPM
from kmatch.losses.projection import cmpc as cmpc
from kmatch.losses.projection import cmpm as cmpm
from kmatch.losses.triplets import Triplet as Triplet
from kmatch.losses.triplets import triplet as triplet
