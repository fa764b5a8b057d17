"""Columns of a run's tables.

Each column is declared once. Records, tables, summary, pages and reference follow from the
declarations.
"""
