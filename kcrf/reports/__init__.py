"""Reports: scores as a table in the terminal; training runs, side by side, as one HTML page. Needs no Keras."""

from kcrf.reports.page import write_report
from kcrf.reports.tables import score_table, table_of_parts, transition_heat_map, transition_table

__all__ = ["write_report"]
