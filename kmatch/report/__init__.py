"""The report page: tables, curves, galleries, projection, diagnostics."""

from kmatch.report.curves import read_history as read_history
from kmatch.report.page import check_folder as check_folder
from kmatch.report.page import save as save
