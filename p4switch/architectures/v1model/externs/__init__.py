"""The externs of v1model, each in its file."""
