"""Middle end: turns the typed tree into flat, inlined and specialised code (see `ir`)."""
