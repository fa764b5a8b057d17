"""The externs of PSA, each in its file."""
