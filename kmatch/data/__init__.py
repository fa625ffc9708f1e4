"""Captioned images, the data sets that yield them, and their batches."""

from kmatch.data.captioned import CaptionedImages as CaptionedImages
from kmatch.data.captioned import Splits as Splits
from kmatch.data.captioned import from_pairs as from_pairs
from kmatch.data.loading import FILES as FILES
from kmatch.data.loading import NAMES as NAMES
from kmatch.data.loading import load as load
from kmatch.data.tables import from_table as from_table
