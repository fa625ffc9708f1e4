"""The report page: tables, curves, galleries, projection, diagnostics."""

from kmatch.report.page import save as save
