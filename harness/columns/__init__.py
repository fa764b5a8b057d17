"""The columns of a run's tables, each declared once: records, tables, summary, pages and reference follow from it."""
