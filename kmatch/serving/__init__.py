"""Serving: export for TF Serving."""

from kmatch.serving.saved_model import export as export
